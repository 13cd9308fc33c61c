"""The accounts that end-to-end tests rent in: three clouds on loopback, looked at from outside.

The clouds run in the test's own process; the controller reaches them as it reaches the real ones:
through the vendors' SDKs, over HTTP, with credentials from its environment. Their machines have no
bodies: they exist, cost and end, and never join.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

from providers.baidu.credentials import VARIABLES
from providers.gcp.launching import request_id
from providers.gcp.naming import Place, decoded, decoded_key, encoded
from tests.emulators.aws import ACCESS_KEY as AWS_KEY
from tests.emulators.aws import IMAGE, AwsEmulator
from tests.emulators.aws import SECRET_KEY as AWS_SECRET
from tests.emulators.baidu import ACCESS_KEY as BAIDU_KEY
from tests.emulators.baidu import SECRET_KEY as BAIDU_SECRET
from tests.emulators.baidu import BaiduEmulator, Fault
from tests.emulators.baidu.signature import Secret
from tests.emulators.gcp import PROJECT, GcpEmulator
from tests.emulators.gcp.auth import ServiceAccount
from tests.emulators.gcp.nodes import Grant
from tests.providers import aws_cloud, baidu_cloud, gcp_cloud

CLUSTER = "hybrid-cluster"
INSTANCE = "hybrid-instance"


@dataclass(frozen=True)
class Machine:
    """A machine that costs, as the cloud has it on record.

    Attributes:
        tags: As the create call brought them.
        token: The cloud's own idempotency token of the create call.
        expires_at_s: As it is now.
    """

    type: str
    zone: str
    is_spot: bool
    tags: Mapping[str, str]
    token: str
    expires_at_s: float | None


class Cloud(Protocol):
    """One emulated cloud with one account."""

    @property
    def name(self) -> str:
        """Return its name in the configuration."""
        ...

    @property
    def zones(self) -> Sequence[str]:
        """Return two zones."""
        ...

    def env(self) -> dict[str, str]:
        """Return what the SDK finds in the environment."""
        ...

    def account(self) -> dict[str, Any]:
        """Return the block under `providers`."""
        ...

    def pool(self, zone: str) -> dict[str, Any]:
        """Return an on-demand pool with one GPU a machine."""
        ...

    def machines(self) -> dict[str, Machine]:
        """Return all that costs, whoever it belongs to, by our adapter's id of it."""
        ...

    def create_count(self) -> int:
        """Return how many create calls came."""
        ...

    def lose_next_answer(self) -> None:
        """Do the work of the next create call, and close the connection without an answer."""
        ...

    def own_token(self, token: str) -> str:
        """Return what the cloud is told as the token of a row's `token`."""
        ...

    def delete_by_hand(self, provider_id: str) -> None:
        """Delete a machine as a person does in the console."""
        ...

    def add_stranger(self, tags: Mapping[str, str]) -> str:
        """Rent a machine as somebody else in the account; return its id."""
        ...

    def refuse_keys(self) -> str:
        """Refuse our credentials from now on; return a word of the cloud's own about it."""
        ...

    def accept_keys(self) -> None:
        """Take them again."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


class Aws:
    """See `Cloud`."""

    name = "aws"
    zones = aws_cloud.ZONES

    def __init__(self) -> None:
        self.emulator = AwsEmulator()
        self.emulator.reset()  # moto's state is one for the whole process

    def stop(self) -> None:
        self.emulator.stop()

    def env(self) -> dict[str, str]:
        return dict(aws_cloud.ENVIRONMENT)

    def account(self) -> dict[str, Any]:
        moto = self.emulator.moto
        region = {
            "image": IMAGE,
            "subnets": {zone: moto.subnet(zone) for zone in self.zones},
            "security_groups": [moto.security_group("us-east-1")],
        }
        return {"endpoint_url": self.emulator.url, "regions": {"us-east-1": region}}

    def pool(self, zone: str) -> dict[str, Any]:
        return {**aws_cloud.POOL, "infra": f"aws/us-east-1/{zone}"}

    def machines(self) -> dict[str, Machine]:
        with self.emulator._lock:
            found = self.emulator.moto.instances("us-east-1")
            return {self._id(i): self._machine(i) for i in found if i.state != "terminated"}

    def create_count(self) -> int:
        return self.emulator.controls.count("RunInstances", "CreateFleet")

    def lose_next_answer(self) -> None:
        self.emulator.controls.fail("RunInstances", is_after=True, is_dropped=True)

    def own_token(self, token: str) -> str:
        return token

    def delete_by_hand(self, provider_id: str) -> None:
        with self.emulator._lock:
            self.emulator.moto.find(provider_id.rpartition("/")[2]).terminate()

    def add_stranger(self, tags: Mapping[str, str]) -> str:
        import boto3

        client = boto3.client(
            "ec2",
            region_name="us-east-1",
            endpoint_url=self.emulator.url,
            aws_access_key_id=AWS_KEY,
            aws_secret_access_key=AWS_SECRET,
        )
        tagged = [{"Key": key, "Value": value} for key, value in tags.items()]
        answer = client.run_instances(
            ImageId=IMAGE,
            InstanceType=aws_cloud.TYPE,
            MinCount=1,
            MaxCount=1,
            SubnetId=self.emulator.moto.subnet(self.zones[0]),
            ClientToken=uuid.uuid4().hex,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tagged}],
        )
        client.close()
        return f"{aws_cloud.ACCOUNT}/us-east-1/{answer['Instances'][0]['InstanceId']}"

    def refuse_keys(self) -> str:
        self.emulator.controls.secrets = {}
        return "AuthFailure"

    def accept_keys(self) -> None:
        self.emulator.controls.secrets = {AWS_KEY: AWS_SECRET}

    @staticmethod
    def _id(instance: Any) -> str:
        return f"{aws_cloud.ACCOUNT}/us-east-1/{instance.id}"

    def _machine(self, instance: Any) -> Machine:
        now = self.emulator.moto.tags(instance.id)
        calls = [c.params for c in self.emulator.controls.calls if c.action == "RunInstances"]
        names = {now[CLUSTER], now.get(INSTANCE, now[CLUSTER])}
        params = next(p for p in calls if names <= set(p.values()))
        stem = "TagSpecification.1.Tag."
        keys = {k: v for k, v in params.items() if k.startswith(stem) and k.endswith(".Key")}
        return Machine(
            type=instance.instance_type,
            zone=instance.placement.zone,
            is_spot=params.get("InstanceMarketOptions.MarketType") == "spot",
            tags={v: params[f"{k.removesuffix('Key')}Value"] for k, v in keys.items()},
            token=params["ClientToken"],
            expires_at_s=float(now["hybrid-expires-at"]) if "hybrid-expires-at" in now else None,
        )


NODE_ACCOUNT = f"hybrid-node@{PROJECT}.iam.gserviceaccount.com"


class Gcp:
    """See `Cloud`."""

    name = "gcp"
    zones = ("us-central1-a", "us-central1-b")

    def __init__(self) -> None:
        self.emulator = GcpEmulator()
        may = Grant({"compute.instances.delete"}, name_prefix="hybrid-")
        self.emulator.api.nodes.grants[NODE_ACCOUNT] = may
        self._owner = self.emulator.api.account

    def stop(self) -> None:
        """End it; every request and answer was as Google's description of the API says."""
        self.emulator.stop()
        assert self.emulator.api.violations == []

    def env(self) -> dict[str, str]:
        key_file = str(self.emulator.key_file)
        return {"GOOGLE_APPLICATION_CREDENTIALS": key_file, "NO_GCE_CHECK": "true"}

    def account(self) -> dict[str, Any]:
        account = {"endpoint_url": self.emulator.url, "service_account": NODE_ACCOUNT}
        return {**gcp_cloud.SETTINGS, **account}

    def pool(self, zone: str) -> dict[str, Any]:
        return {**gcp_cloud.POOL, "infra": f"gcp/us-central1/{zone}"}

    def machines(self) -> dict[str, Machine]:
        cloud = self.emulator.cloud
        with cloud.lock:
            cloud.settle()
            return {
                str(Place(*key)): self._machine(instance)
                for key, instance in cloud.instances.items()
                if instance["status"] != "STOPPING"
            }

    def create_count(self) -> int:
        return len(self._creations())

    def lose_next_answer(self) -> None:
        self.emulator.faults.add(is_after=True, is_dropped=True)

    def own_token(self, token: str) -> str:
        return request_id(token)

    def delete_by_hand(self, provider_id: str) -> None:
        place = Place.of(provider_id)
        assert place is not None
        cloud, key = self.emulator.cloud, (place.project, place.zone, place.name)
        with cloud.lock:
            # not `delete`: Google refuses while a lease is being renewed, and a person waits
            cloud.end(key, kind="delete")

    def add_stranger(self, tags: Mapping[str, str]) -> str:
        body = deepcopy(self._creations()[0].body)
        labels = {key: encoded(value) for key, value in tags.items()}
        body |= {"name": f"stranger-{uuid.uuid4().hex[:8]}", "labels": labels}
        cloud, zone = self.emulator.cloud, self.zones[0]
        base = f"{self.emulator.url}/compute/v1/projects/{PROJECT}"
        with cloud.lock:
            cloud.insert(base, zone, body, str(uuid.uuid4()), lambda: None)
        return str(Place(PROJECT, zone, body["name"]))

    def refuse_keys(self) -> str:
        self.emulator.api.account = ServiceAccount(PROJECT, "somebody-else")
        return "invalid authentication credentials"

    def accept_keys(self) -> None:
        self.emulator.api.account = self._owner

    def _creations(self) -> list[Any]:
        return [r for r in list(self.emulator.api.log) if r.method == "instances.insert"]

    def _machine(self, instance: Any) -> Machine:
        calls = (c for c in self._creations() if c.body["name"] == instance["name"])
        call = next(calls, None)
        labels = call.body["labels"] if call else instance["labels"]
        items = {i["key"]: i["value"] for i in instance["metadata"]["items"]}
        return Machine(
            type=instance["machineType"].rpartition("/")[2],
            zone=instance["zone"].rpartition("/")[2],
            is_spot=instance["scheduling"]["provisioningModel"] == "SPOT",
            tags={decoded_key(k) or k: decoded(v) or v for k, v in labels.items()},
            token=call.query["requestId"] if call else "",
            expires_at_s=float(items["hybrid-expires-at"]),
        )


class Baidu:
    """See `Cloud`."""

    name = "baidu"
    zones = ("cn-bj-d", "cn-bj-a")

    def __init__(self) -> None:
        self.emulator = BaiduEmulator()

    def stop(self) -> None:
        self.emulator.stop()

    def env(self) -> dict[str, str]:
        return dict(zip(VARIABLES, (BAIDU_KEY, BAIDU_SECRET), strict=False))

    def account(self) -> dict[str, Any]:
        return {**baidu_cloud.ACCOUNT, "endpoints": {"bj": self.emulator.url}}

    def pool(self, zone: str) -> dict[str, Any]:
        return {**baidu_cloud.POOL, "infra": f"baidu/bj/{zone}"}

    def machines(self) -> dict[str, Machine]:
        with self.emulator.lock:
            cloud = self.emulator.cloud
            return {f"bj/{bcc_id}": self._machine(bcc_id) for bcc_id in cloud.living()}

    def create_count(self) -> int:
        return len(self.emulator.calls(baidu_cloud.CREATE))

    def lose_next_answer(self) -> None:
        self.emulator.faults.append(Fault("lose", call=baidu_cloud.CREATE))

    def own_token(self, token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()[:40]

    def delete_by_hand(self, provider_id: str) -> None:
        with self.emulator.lock:
            # into the recycle bin, as the console does unless it is told otherwise
            self.emulator.cloud.recycle_by_hand(provider_id.rpartition("/")[2])

    def add_stranger(self, tags: Mapping[str, str]) -> str:
        body = deepcopy(self.emulator.calls(baidu_cloud.CREATE)[0].body)
        body["tags"] = [{"tagKey": key, "tagValue": value} for key, value in tags.items()]
        with self.emulator.lock:
            answer = self.emulator.cloud.create({"clientToken": uuid.uuid4().hex}, body)
        return f"bj/{answer['instanceIds'][0]}"

    def refuse_keys(self) -> str:
        self.emulator.secrets = {}
        return "InvalidAccessKeyId"

    def accept_keys(self) -> None:
        self.emulator.secrets = {BAIDU_KEY: Secret(BAIDU_SECRET)}

    def _machine(self, bcc_id: str) -> Machine:
        instance = self.emulator.cloud.instances[bcc_id]
        calls = self.emulator.calls(baidu_cloud.CREATE)
        call = next((c for c in calls if c.body["tags"] == instance.body["tags"]), None)
        return Machine(
            type=instance.body["spec"],
            zone=instance.body["zoneName"],
            is_spot=instance.is_spot,
            tags=instance.tags,
            token=call.query["clientToken"] if call else "",
            expires_at_s=instance.release_at_s,
        )
