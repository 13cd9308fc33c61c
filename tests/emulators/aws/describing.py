"""What EC2 shows: instances with its lags and pages, prices, images, parameters."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from tests.emulators.aws.backend import Moto
from tests.emulators.aws.controls import Controls
from tests.emulators.aws.wire import NAMESPACE, Answer, Request, error, tag

_MOTO_FILTERS = ("tag:", "tag-key", "instance-id", "instance-state-name", "instance-type")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


@dataclass
class Describer:
    """Shows what moto has, as late and as piecemeal as EC2 does."""

    moto: Moto
    controls: Controls
    _seen: Counter[str] = field(default_factory=Counter)
    _seen_ended: Counter[str] = field(default_factory=Counter)
    _pages: dict[str, list[Element]] = field(default_factory=dict)

    # --- instances --------------------------------------------------------------------------

    def instances(self, request: Request) -> Answer:
        if token := request.get("NextToken"):
            if token not in self._pages:
                return error("InvalidNextToken", f"The token '{token}' is not valid")
            return self._page(request, self._pages.pop(token))
        names = {request.get(f"{prefix}.Name") for prefix in request.numbered("Filter")}
        for name in names:
            if not name.startswith(_MOTO_FILTERS):
                return error("InvalidParameterValue", f"The filter '{name}' is invalid")
        asked = {k: v for k, v in request.params.items() if k not in ("MaxResults", "NextToken")}
        # moto has pages of 100 of its own; here are all of them, and the pages are ours.
        if not list(request.numbered("InstanceId")):
            asked["MaxResults"] = str(10**9)
        answer = self.moto.answer(request.with_params(asked))
        if answer.status != 200:
            return answer
        # moto leaves out the slash at the end of the namespace.
        root = ET.fromstring(answer.body.replace(b'2016-11-15"', b'2016-11-15/"', 1))
        reservations = root.find(tag("reservationSet"))
        shown = [] if reservations is None else list(reservations)
        return self._page(request, [one for one in shown if self._show(one)])

    def _show(self, reservation: Element) -> bool:
        """Change a reservation to what can be seen of it; return whether that is anything."""
        instances = reservation.find(tag("instancesSet"))
        assert instances is not None
        for instance in list(instances):
            instance_id = instance.findtext(tag("instanceId"), "")
            state = instance.find(tag("instanceState"))
            assert state is not None
            name = state.findtext(tag("name"))
            self._seen[instance_id] += 1
            count = self._seen[instance_id] - self.controls.hidden_lists
            if count <= 0 or instance_id in self.controls.forgotten:
                instances.remove(instance)
            elif name == "terminated":
                self._seen_ended[instance_id] += 1
                count = self._seen_ended[instance_id]
                if count <= self.controls.ending_lists:
                    _set_state(state, "shutting-down", 32)
                elif count > self.controls.ending_lists + self.controls.ended_lists:
                    self.controls.forgotten.add(instance_id)
                    instances.remove(instance)
            elif name == "running" and count <= self.controls.pending_lists:
                _set_state(state, "pending", 0)
        return len(instances) > 0

    def _page(self, request: Request, reservations: list[Element]) -> Answer:
        asked = int(request.get("MaxResults") or self.controls.page_count)
        count = min(asked, self.controls.page_count)
        token = ""
        if len(reservations) > count:
            token = uuid.uuid4().hex
            self._pages[token] = reservations[count:]
        root = Element(tag("DescribeInstancesResponse"))
        ET.SubElement(root, tag("requestId")).text = str(uuid.uuid4())
        ET.SubElement(root, tag("reservationSet")).extend(reservations[:count])
        if token:
            ET.SubElement(root, tag("nextToken")).text = token
        return Answer(200, "text/xml", ET.tostring(root, "utf-8", xml_declaration=True))

    # --- everything else --------------------------------------------------------------------

    def images(self, request: Request) -> Answer:
        asked = [request.get(prefix) for prefix in request.numbered("ImageId")]
        unknown = [image for image in asked if image not in self.controls.images]
        if unknown:
            return error("InvalidAMIID.NotFound", f"The image id '[{unknown[0]}]' does not exist")
        items = "".join(
            f"<item><imageId>{image}</imageId><imageState>available</imageState>"
            f"<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType>"
            f"<rootDeviceName>{self.controls.images[image]}</rootDeviceName></item>"
            for image in asked or self.controls.images
        )
        return _xml("DescribeImages", f"<imagesSet>{items}</imagesSet>")

    def spot_prices(self, request: Request) -> Answer:
        wanted = {request.get(prefix) for prefix in request.numbered("InstanceType")}
        now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        items = "".join(
            f"<item><instanceType>{instance_type}</instanceType>"
            f"<productDescription>Linux/UNIX</productDescription><spotPrice>{price:.6f}</spotPrice>"
            f"<timestamp>{now}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
            for (instance_type, zone), price in sorted(self.controls.spot_usd_per_hour.items())
            if instance_type in wanted and zone.startswith(request.region)
        )
        # EC2 ends this list with an empty token.
        body = f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken></nextToken>"
        return _xml("DescribeSpotPriceHistory", body)

    def identity(self, _: Request) -> Answer:
        """Answer STS's GetCallerIdentity."""
        text = (
            f'{_HEAD}<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            f"<GetCallerIdentityResult><Account>{self.controls.account}</Account>"
            f"<UserId>AIDA</UserId><Arn>arn:aws:iam::{self.controls.account}:user/burst</Arn>"
            "</GetCallerIdentityResult></GetCallerIdentityResponse>"
        )
        return Answer(200, "text/xml", text.encode())

    def parameter(self, request: Request) -> Answer:
        """Answer SSM's GetParameter."""
        name = json.loads(request.body)["Name"]
        if name not in self.controls.parameters:
            problem = {"__type": "ParameterNotFound", "message": f"{name} not found"}
            return _json(400, problem)
        value = self.controls.parameters[name]
        return _json(200, {"Parameter": {"Name": name, "Type": "String", "Value": value}})


def _set_state(state: Element, name: str, code: int) -> None:
    for key, text in (("name", name), ("code", str(code))):
        element = state.find(tag(key))
        assert element is not None
        element.text = text


def _xml(action: str, body: str) -> Answer:
    text = (
        f'{_HEAD}<{action}Response xmlns="{NAMESPACE}"><requestId>{uuid.uuid4()}</requestId>'
        f"{body}</{action}Response>"
    )
    return Answer(200, "text/xml", text.encode())


def _json(status: int, content: object) -> Answer:
    return Answer(status, "application/x-amz-json-1.1", json.dumps(content).encode())
