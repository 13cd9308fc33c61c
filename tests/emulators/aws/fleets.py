"""CreateFleet as EC2 does it: instant fleets, filled from several pools, in part or not at all."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.emulators.aws.backend import Moto
from tests.emulators.aws.controls import Controls
from tests.emulators.aws.launching import Launcher
from tests.emulators.aws.wire import NAMESPACE, Answer, Request, error, flat

_TAGGED = frozenset({"fleet", "instance", "network-interface", "volume"})
_SPECIFICATION = "LaunchTemplateConfigs.1.LaunchTemplateSpecification"


@dataclass
class FleetMaker:
    """Makes fleets out of a launch template and what the request itself says."""

    moto: Moto
    controls: Controls
    launcher: Launcher

    def create_fleet(self, request: Request) -> Answer:
        if request.get("Type") != "instant":
            return error("InvalidParameterValue", "this emulator makes instant fleets only")
        return self.launcher.once(request, "", lambda: self._fleet(request))

    def _fleet(self, request: Request) -> Answer:
        """Fill the fleet from its pools in order, and report each pool that failed."""
        template = self._template(request)
        if isinstance(template, Answer):
            return template
        kinds = [request.get(f"{p}.ResourceType") for p in request.numbered("TagSpecification")]
        if unknown := sorted(set(kinds) - _TAGGED):
            return error("InvalidParameterValue", f"'{unknown[0]}' cannot be tagged by a fleet")
        wanted = int(request.get("TargetCapacitySpecification.TotalTargetCapacity"))
        launched, errors = "", ""
        for prefix in request.numbered("LaunchTemplateConfigs.1.Overrides"):
            if wanted == 0:
                break
            pool = _pool_request(request, template, prefix)
            zone = self.launcher.zone(pool)
            fault = self.controls.take_fault("CreateFleet.pool", zone)
            answer = error(fault.code, fault.message) if fault else self.launcher.run(pool, zone)
            if answer.status == 200:
                wanted -= 1
                newest = self.moto.instances(request.region)[-1]
                launched += _launched(pool, newest.id)
            else:
                errors += _failed(pool, answer)
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?><CreateFleetResponse xmlns="{NAMESPACE}">'
            f"<requestId>{uuid.uuid4()}</requestId><fleetId>fleet-{uuid.uuid4()}</fleetId>"
            f"<errorSet>{errors}</errorSet><fleetInstanceSet>{launched}</fleetInstanceSet>"
            "</CreateFleetResponse>"
        )
        return Answer(200, "text/xml", text.encode())

    def _template(self, request: Request) -> dict[str, object] | Answer:
        name = request.get(f"{_SPECIFICATION}.LaunchTemplateName")
        version = request.get(f"{_SPECIFICATION}.Version")
        region = self.moto.region(request.region)
        template_id = region.launch_template_name_to_ids.get(name)
        if template_id is None:
            return error(
                "InvalidLaunchTemplateName.NotFoundException",
                f"The specified launch template, with template name {name}, does not exist.",
            )
        versions = region.launch_templates[template_id].versions
        if version == "$Latest":
            return dict(versions[-1].data)
        found = [dict(one.data) for one in versions if str(one.number) == version]
        if not found:
            return error("InvalidLaunchTemplateId.VersionNotFound", f"there is no {version}")
        return found[0]


def _pool_request(request: Request, template: dict[str, object], prefix: str) -> Request:
    """Return what a fleet does for one pool: a RunInstances of one machine."""
    params = {_singular(key): text for key, text in flat(template).items()}
    params |= {"MinCount": "1", "MaxCount": "1", "Version": request.get("Version")}
    params |= {"Action": "RunInstances"}
    params["InstanceType"] = request.get(f"{prefix}.InstanceType")
    if subnet := request.get(f"{prefix}.SubnetId"):
        params["SubnetId"] = subnet
    if user_data := request.get(f"{_SPECIFICATION}.LaunchTemplateSpecificationUserData"):
        params["UserData"] = user_data
    if request.get("TargetCapacitySpecification.DefaultTargetCapacityType") == "spot":
        params["InstanceMarketOptions.MarketType"] = "spot"
    own = request.with_params(params)
    taken_count = len(list(own.numbered("TagSpecification")))
    return request.with_params(params | _tags(request, after=taken_count))


def _tags(request: Request, *, after: int) -> dict[str, str]:
    """Return the tags that a fleet gives its instances, numbered on after the template's."""
    prefixes = [
        prefix
        for prefix in request.numbered("TagSpecification")
        if request.get(f"{prefix}.ResourceType") != "fleet"
    ]
    return {
        f"TagSpecification.{number}{key.removeprefix(prefix)}": text
        for number, prefix in enumerate(prefixes, start=after + 1)
        for key, text in request.params.items()
        if key.startswith(f"{prefix}.")
    }


def _singular(key: str) -> str:
    """Return a launch template's name of a parameter as RunInstances has it."""
    renames = {
        "TagSpecifications": "TagSpecification",
        "BlockDeviceMappings": "BlockDeviceMapping",
        "SecurityGroupIds": "SecurityGroupId",
        "NetworkInterfaces": "NetworkInterface",
    }
    head, _, rest = key.partition(".")
    return f"{renames.get(head, head)}.{rest.replace('Tags.', 'Tag.')}" if rest else key


def _launched(pool: Request, instance_id: str) -> str:
    is_spot = pool.get("InstanceMarketOptions.MarketType") == "spot"
    return (
        f"<item><instanceIds><item>{instance_id}</item></instanceIds>"
        f"<instanceType>{pool.get('InstanceType')}</instanceType>"
        f"<lifecycle>{'spot' if is_spot else 'on-demand'}</lifecycle></item>"
    )


def _failed(pool: Request, answer: Answer) -> str:
    text = answer.body.decode()
    code = text.partition("<Code>")[2].partition("</Code>")[0]
    message = text.partition("<Message>")[2].partition("</Message>")[0]
    return (
        "<item><launchTemplateAndOverrides><overrides>"
        f"<instanceType>{escape(pool.get('InstanceType'))}</instanceType>"
        f"<subnetId>{escape(pool.get('SubnetId'))}</subnetId>"
        f"</overrides></launchTemplateAndOverrides><errorCode>{code}</errorCode>"
        f"<errorMessage>{message}</errorMessage></item>"
    )
