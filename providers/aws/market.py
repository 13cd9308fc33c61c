"""What AWS is asked for now and then, and remembered: machine types, spot prices, images."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from hybrid.core.errors import InvalidRequestError
from hybrid.core.models import Model
from hybrid.core.ports import Clock
from providers.aws.client import AwsClient
from providers.aws.offers import Machine, machine
from providers.aws.once import Once
from providers.aws.params import SSM

REFRESH_S = 300.0
"""Spot prices are asked for at most this often."""

STALE_S = 3600.0
"""A spot price older than this is no price."""

IMAGE_S = 3600.0
"""How long an SSM parameter's image is taken for granted."""


class Image(Model):
    """An image to boot from."""

    image_id: str
    root_device: str


class Types:
    """Facts about instance types; they never change."""

    def __init__(self, client: AwsClient) -> None:
        self._client = client
        self._machines: dict[tuple[str, str], Machine] = {}

    def of(self, region: str, names: Collection[str]) -> Mapping[str, Machine]:
        """Return the facts about instance types. Raises `ProviderError`."""
        missing = sorted(name for name in names if (region, name) not in self._machines)
        if missing:
            answer = self._client.call(
                region, "ec2.describe_instance_types", "InstanceTypes", InstanceTypes=missing
            )
            for item in answer["InstanceTypes"]:
                self._machines[region, item["InstanceType"]] = machine(item)
        return {
            name: self._machines[region, name] for name in names if (region, name) in self._machines
        }


class SpotPrices:
    """Prices of the spot market."""

    def __init__(self, client: AwsClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._asked_at_s: dict[str, float] = {}
        self._prices: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}

    def refresh(self, region: str, types: Collection[str]) -> None:
        """Read a region's prices, unless that was done a moment ago. Raises `ProviderError`."""
        now_s = self._clock.monotonic_s()
        asked_at_s = self._asked_at_s.get(region)
        if asked_at_s is not None and now_s - asked_at_s < REFRESH_S:
            return
        items = self._client.pages(
            region,
            "ec2.describe_spot_price_history",
            "SpotPriceHistory",
            InstanceTypes=sorted(types),
            ProductDescriptions=["Linux/UNIX"],
            # From now on: the price in force, one for each zone.
            StartTime=datetime.fromtimestamp(self._clock.now_s(), tz=UTC),
        )
        newest: dict[tuple[str, str], tuple[datetime, float]] = {}
        for item in items:
            key = item["InstanceType"], item["AvailabilityZone"]
            found = item["Timestamp"], float(item["SpotPrice"])
            newest[key] = max(newest.get(key, found), found)
        for (name, zone), (_, price) in newest.items():
            self._prices.setdefault((region, name), {})[zone] = (price, now_s)
        self._asked_at_s[region] = now_s

    def usd_per_hour(self, region: str, name: str) -> Mapping[str, float]:
        """Return the fresh prices of a type, by zone."""
        now_s = self._clock.monotonic_s()
        known = self._prices.get((region, name), {})
        return {zone: usd for zone, (usd, at_s) in known.items() if now_s - at_s < STALE_S}


class Images:
    """Images by what the configuration calls them. Thread-safe."""

    def __init__(self, client: AwsClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._ids: Once[tuple[str, str], tuple[str, float]] = Once()
        self._images: Once[tuple[str, str], Image] = Once()

    def find(self, region: str, name: str) -> Image:
        """Return the image behind an AMI id or `ssm:/parameter`.

        The name of its root device is needed to encrypt the root volume: under another name
        EC2 would add a second volume and leave the root as it is.

        Raises:
            InvalidRequestError: There is no such image or parameter.
            ProviderError: It could not be looked up.
        """
        image_id = self._parameter(region, name) if name.startswith(SSM) else name
        return self._images.get((region, image_id), lambda: self._describe(region, image_id))

    def _parameter(self, region: str, name: str) -> str:
        now_s = self._clock.monotonic_s()
        image_id, at_s = self._ids.get((region, name), lambda: self._ask(region, name))
        if now_s - at_s >= IMAGE_S:
            self._ids.forget((region, name))
            image_id, _ = self._ids.get((region, name), lambda: self._ask(region, name))
        return image_id

    def _ask(self, region: str, name: str) -> tuple[str, float]:
        """Return the image that a parameter holds, and when that was."""
        now_s = self._clock.monotonic_s()
        parameter = name.removeprefix(SSM)
        answer = self._client.call(region, "ssm.get_parameter", "Parameter", Name=parameter)
        image_id = str(answer["Parameter"]["Value"]).strip()
        if not image_id.startswith("ami-"):
            raise InvalidRequestError(
                f"SSM parameter {parameter} in {region} holds {image_id[:60]!r}, "
                "which is not an image id",
                provider=self._client.provider,
            )
        return image_id, now_s

    def _describe(self, region: str, image_id: str) -> Image:
        answer = self._client.call(region, "ec2.describe_images", "Images", ImageIds=[image_id])
        found = next(iter(answer["Images"]), None)
        if found is None or not found.get("RootDeviceName"):
            raise InvalidRequestError(
                f"image {image_id} does not exist in {region}, or has no root volume; check the "
                "id, and that the image is shared with the account",
                provider=self._client.provider,
            )
        return Image(image_id=image_id, root_device=found["RootDeviceName"])
