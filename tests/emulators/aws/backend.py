"""moto's own state and its WSGI application, behind a few typed doors."""

from __future__ import annotations

import io
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import StateReason
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from tests.emulators.aws.wire import Answer, Request, error

SPOT_TERMINATION = "Server.SpotInstanceTermination"


class Moto:
    """The EC2 that moto makes."""

    def __init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)

    def answer(self, request: Request) -> Answer:
        """Return moto's own answer."""
        environ = dict(request.environ)
        environ["wsgi.input"] = io.BytesIO(request.body)
        environ["CONTENT_LENGTH"] = str(len(request.body))
        got: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _error: object = None) -> None:
            got.update(status=int(status.split(maxsplit=1)[0]), headers=dict(headers))

        try:
            body = b"".join(self._application(environ, start))
        except NotImplementedError as err:
            return error("InvalidAction", str(err))
        return Answer(got["status"], got["headers"].get("Content-Type", "text/xml"), body)

    def region(self, name: str) -> Any:
        """Return moto's state of a region."""
        return ec2_backends[DEFAULT_ACCOUNT_ID][name]

    def subnet(self, zone: str) -> str:
        """Return the default subnet of a zone."""
        subnets = self.region(zone[:-1]).subnets[zone].values()
        return str(next(subnet.id for subnet in subnets if subnet.default_for_az))

    def security_group(self, region: str) -> str:
        """Return the default security group of a region."""
        backend = self.region(region)
        return str(backend.get_default_security_group(backend.get_default_vpc().id).id)

    def zone_of(self, region: str, subnet_id: str) -> str:
        """Return the zone of a subnet; `""` when there is no such subnet."""
        for zone, subnets in self.region(region).subnets.items():
            if subnet_id in subnets:
                return str(zone)
        return ""

    def instances(self, region: str) -> list[Any]:
        """Return all instances of a region, ended ones included."""
        backend = self.region(region)
        return [i for reservation in backend.reservations.values() for i in reservation.instances]

    def find(self, instance_id: str) -> Any:
        """Return an instance, wherever it is. Raises `KeyError`."""
        for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values():
            for reservation in backend.reservations.values():
                for instance in reservation.instances:
                    if instance.id == instance_id:
                        return instance
        raise KeyError(instance_id)

    def tags(self, instance_id: str) -> dict[str, str]:
        """Return the tags of an instance."""
        return {tag["key"]: tag["value"] for tag in self.find(instance_id).get_tags()}

    def vcpu_count(self, region: str) -> int:
        """Return the vCPUs of all running instances."""
        running = (i for i in self.instances(region) if i.state == "running")
        return sum(vcpus(instance.instance_type) for instance in running)

    def take_back(self, instance_id: str) -> None:
        """End a spot instance as EC2 does when it wants the machine back."""
        self.fail_late(instance_id, SPOT_TERMINATION, "Instance terminated by Spot service")

    def fail_late(self, instance_id: str, code: str, message: str) -> None:
        """End an instance that was accepted, as EC2 does when its volume cannot be made."""
        instance = self.find(instance_id)
        instance.terminate()
        instance.state_reason = StateReason(f"{code}: {message}", code)

    def stop(self, instance_id: str) -> None:
        """Stop an instance, as a person does in the console."""
        self.find(instance_id).stop()


def is_type(name: str) -> bool:
    """Return whether EC2 has such an instance type."""
    return name in INSTANCE_TYPES


def vcpus(name: str) -> int:
    """Return the vCPUs of an instance type."""
    return int(INSTANCE_TYPES[name]["VCpuInfo"]["DefaultVCpus"])
