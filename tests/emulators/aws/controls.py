"""What the emulator is told to do: stock, limits, lags and faults, and what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field

IMAGE = "ami-0123456789abcdef0"
ACCESS_KEY = "AKIDEMULATOR00000001"
SECRET_KEY = "emulator-secret-key"  # of an emulator
ANY = "*"


@dataclass
class Fault:
    """Something that goes wrong `times` times.

    Attributes:
        action: Such as `RunInstances`, or `*`.
        code: EC2's error code; `""` with one of the flags below.
        http: Status of the answer; 0 for the one EC2 uses.
        zone: Only for launches there; `*` anywhere.
        skip_count: So many requests go well before.
        is_after: The work is done first.
        is_dropped: The connection is closed without an answer.
        is_html: A proxy's error page comes instead.
        delay_s: The answer takes so long.
    """

    action: str = ANY
    code: str = ""
    message: str = "injected"
    http: int = 0
    times: int = 1
    zone: str = ANY
    skip_count: int = 0
    is_after: bool = False
    is_dropped: bool = False
    is_html: bool = False
    delay_s: float = 0.0


@dataclass
class Call:
    """One request as it came.

    Attributes:
        params: Of the query protocol.
    """

    action: str
    region: str
    params: dict[str, str]
    endpoint: str = ""


@dataclass
class Controls:
    """Everything adjustable.

    Attributes:
        secrets: Secret by access key.
        account: Number of the account that all credentials are for.
        session_token: What temporary credentials must bring; `""` for none.
        allowed: Actions that the caller may take, such as `ec2:RunInstances`; `None` for all.
        clock_skew_s: How far the server's clock is ahead of ours.
        stock: Instances left by (type, zone, market); each part may be `*`. Absent: plenty.
        vcpu_limit: Quota of running vCPUs; `None` for none.
        images: Images that exist, by id, with their root device.
        parameters: SSM parameters.
        spot_usd_per_hour: Spot prices by (type, zone).
        list_prices: On-demand prices by (type, region), as AWS writes them: `55.0400000000`, or
            `3.5 CNY` in another currency.
        price_list: What the price list holds instead, whatever is asked for: JSON texts.
        hidden_lists: How many lists a new instance is missing from.
        pending_lists: In how many lists after that it is `pending`.
        ending_lists: In how many lists an ended one is `shutting-down`.
        ended_lists: In how many lists an ended one is; EC2 shows it for about an hour.
        page_count: Most reservations on one page, whatever is asked for.
        forgotten: Ended instances that EC2 no longer knows.
    """

    secrets: dict[str, str] = field(default_factory=lambda: {ACCESS_KEY: SECRET_KEY})
    account: str = "123456789012"
    session_token: str = ""
    allowed: set[str] | None = None
    clock_skew_s: float = 0.0
    stock: dict[tuple[str, str, str], int] = field(default_factory=dict)
    vcpu_limit: int | None = None
    images: dict[str, str] = field(default_factory=lambda: {IMAGE: "/dev/sda1"})
    parameters: dict[str, str] = field(default_factory=dict)
    spot_usd_per_hour: dict[tuple[str, str], float] = field(default_factory=dict)
    list_prices: dict[tuple[str, str], str] = field(default_factory=dict)
    price_list: list[object] | None = None
    hidden_lists: int = 0
    pending_lists: int = 0
    ending_lists: int = 0
    ended_lists: int = 10**9
    page_count: int = 1000
    forgotten: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def fail(self, action: str = ANY, code: str = "", **more: object) -> None:
        """Add a fault; see `Fault`."""
        self.faults.append(Fault(action, code, **more))  # type: ignore[arg-type]

    def set_stock(self, count: int, instance_type: str = ANY, zone: str = ANY) -> None:
        """Leave `count` instances of a type to rent in a zone, spot and on-demand alike."""
        self.stock[instance_type, zone, ANY] = count

    def sell_out(self) -> None:
        """Leave nothing to rent."""
        self.set_stock(0)

    def take_fault(self, action: str, zone: str = "", *, is_after: bool = False) -> Fault | None:
        """Return the fault that strikes now, if one does, and count it."""
        for fault in self.faults:
            fits = fault.action in (ANY, action) and fault.zone in (ANY, zone)
            if not fits or fault.is_after != is_after or fault.times <= 0:
                continue
            if fault.skip_count > 0:
                fault.skip_count -= 1
                continue
            fault.times -= 1
            return fault
        return None

    def left(self, instance_type: str, zone: str, market: str) -> tuple[str, str, str] | None:
        """Return the stock entry that counts for a pool."""
        keys = [(t, z, m) for t in (instance_type, ANY) for z in (zone, ANY) for m in (market, ANY)]
        return next((key for key in keys if key in self.stock), None)

    def count(self, *actions: str) -> int:
        """Return how many requests came, of these actions if any are named."""
        return sum(not actions or call.action in actions for call in self.calls)
