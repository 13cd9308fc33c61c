"""How each emulated cloud boots a machine, what it tells it, and what its end means to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tests.bodies.body import Boot
from tests.bodies.hypervisor import Side
from tests.bodies.metadata import Ask, Told
from tests.e2e.accounts import Aws, Baidu, Cloud, Gcp
from tests.emulators.aws.imds import PREFIX
from tests.emulators.gcp.cloud import Key

_PREEMPTED = "compute.instances.preempted"
_GCP_HOST = {"metadata.google.internal": "169.254.169.254"}


def side_of(cloud: Cloud) -> Side:
    """Return a cloud as its hypervisor sees it."""
    match cloud:
        case Aws():
            return AwsSide(cloud)
        case Gcp():
            return GcpSide(cloud)
        case Baidu():
            return BaiduSide(cloud)
        case _:
            raise TypeError(f"{cloud.name} has no bodies")


class AwsSide:
    """EC2: cloud-init runs user data, and a shutdown from inside ends the instance."""

    def __init__(self, cloud: Aws) -> None:
        self._emulator = cloud.emulator

    def running(self) -> Mapping[str, Callable[[], Boot]]:
        """See `Side`."""
        with self._emulator._lock:
            found = self._emulator.moto.instances("us-east-1")
            return {i.id: partial(self._boot, i) for i in found if i.state == "running"}

    def asked_off(self) -> Set[str]:
        """See `Side`. AWS gives notice in the metadata only."""
        return set()

    def went_off(self, machine_id: str) -> None:
        """See `Side`."""
        with self._emulator._lock:
            instance = self._emulator.moto.find(machine_id)
            if instance.instance_initiated_shutdown_behavior == "terminate":
                instance.terminate()
            else:
                instance.stop()

    def _boot(self, instance: Any) -> Boot:
        return Boot(
            hostname=instance.id,
            user_data=base64.b64decode(str(instance.user_data)).decode(),
            answers=partial(self._answer, instance.id),
        )

    def _answer(self, machine_id: str, ask: Ask) -> Told:
        environ = {f"HTTP_{k.upper().replace('-', '_')}": v for k, v in ask.headers.items()}
        environ |= {"REQUEST_METHOD": ask.method, "PATH_INFO": f"{PREFIX}{machine_id}{ask.path}"}
        with self._emulator._lock:
            answer = self._emulator.metadata.answer(environ)
        return Told(answer.status, answer.body)


class GcpSide:
    """Compute Engine: the guest agent runs the scripts, and preemption presses the button."""

    def __init__(self, cloud: Gcp) -> None:
        self._api = cloud.emulator.api
        self._port = urlsplit(cloud.emulator.url).port or 0
        self._cloud = cloud.emulator.cloud
        # The bodies do that themselves here.
        self._cloud.ends_guests = False

    def running(self) -> Mapping[str, Callable[[], Boot]]:
        """See `Side`."""
        with self._cloud.lock:
            self._cloud.settle()
            return {
                name: partial(self._boot, instance)
                for (_, _, name), instance in self._cloud.instances.items()
                if instance["status"] == "RUNNING" or name in self._preempted()
            }

    def asked_off(self) -> Set[str]:
        """See `Side`."""
        with self._cloud.lock:
            return self._preempted()

    def went_off(self, machine_id: str) -> None:
        """See `Side`."""
        with self._cloud.lock:
            key = self._key(machine_id)
            if self._cloud.operations.running(self._cloud.instances[key]["selfLink"]) is None:
                self._cloud.stop(key, kind="compute.instances.guestTerminate")

    def _boot(self, instance: Any) -> Boot:
        items = _items(instance)
        return Boot(
            hostname=instance["name"],
            user_data=items["startup-script"],
            answers=partial(self._answer, instance["name"]),
            shutdown_script=items.get("shutdown-script", ""),
            hosts=_GCP_HOST,
            api_port=self._port,
        )

    def _answer(self, machine_id: str, ask: Ask) -> Told:
        if ask.headers.get("metadata-flavor") != "Google":
            return Told(403, b"Missing Metadata-Flavor:Google header.")
        what = ask.path.removeprefix("/computeMetadata/v1/instance/")
        with self._cloud.lock:
            instance = self._cloud.instances.get(self._key(machine_id))
            if instance is None:
                return Told(503)
            if what == "preempted":
                return Told(200, b"TRUE" if machine_id in self._preempted() else b"FALSE")
            facts = {"name": machine_id}
            facts |= {f"attributes/{key}": value for key, value in _items(instance).items()}
            for account in instance.get("serviceAccounts", ()):
                token = {"access_token": self._api.nodes.new_token(account["email"])}
                facts["service-accounts/default/token"] = json.dumps(
                    token | {"expires_in": 3599, "token_type": "Bearer"}
                )
        return Told(200, facts[what].encode()) if what in facts else Told(404)

    def _preempted(self) -> Set[str]:
        """Return the machines that Google is taking back."""
        operations = self._cloud.operations.of(_PREEMPTED)
        return {o.target.rpartition("/")[2] for o in operations if not o.is_done}

    def _key(self, machine_id: str) -> Key:
        return next((k for k in self._cloud.instances if k[2] == machine_id), ("", "", ""))


class BaiduSide:
    """BCC: cloud-init runs user data, and a machine that goes off goes on to cost."""

    def __init__(self, cloud: Baidu) -> None:
        self._emulator = cloud.emulator

    def running(self) -> Mapping[str, Callable[[], Boot]]:
        """See `Side`."""
        with self._emulator.lock:
            cloud = self._emulator.cloud
            found = [cloud.instances[bcc_id] for bcc_id in cloud.living()]
            return {
                i.bcc_id: partial(self._boot, i.bcc_id, i.body)
                for i in found
                if cloud._status(i) == "Running"
            }

    def asked_off(self) -> Set[str]:
        """See `Side`. Baidu gives no notice."""
        return set()

    def went_off(self, machine_id: str) -> None:
        """See `Side`."""
        with self._emulator.lock:
            self._emulator.cloud.stop(machine_id)

    def _boot(self, bcc_id: str, body: Mapping[str, Any]) -> Boot:
        return Boot(hostname=bcc_id, user_data=base64.b64decode(body["userData"]).decode())


def _items(instance: Any) -> dict[str, str]:
    return {item["key"]: item["value"] for item in instance["metadata"]["items"]}
