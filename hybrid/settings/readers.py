"""Reads one amount of a configuration, whether it was written as text or as a number.

Every reader raises `ValueError` with one sentence: what is wrong, then `;`, then what to write.
Not `TypeError`: pydantic collects `ValueError` only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal

from hybrid.core import quantity
from hybrid.core.quantity import CountRange, GpuRequest, shown
from hybrid.core.slo.reading import LEAST_WINDOW_S

PORTS = CountRange(low=1_024, high=65_535)

_WHOLE = re.compile(r"[-+]?[0-9]{1,15}")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]{1,15}|[0-9]{1,15}(?:\.[0-9]{0,15})?)")
_TOO_LARGE = 10**15
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_LONGEST_S = 366 * 86_400.0
_SHORTEST_S = 0.1


MPS_CLIENTS_MAX = 48
"""Programs at a time on one GPU, from NVIDIA's Volta on (MPS documentation, "Client limits")."""
_MIG_PROFILE = re.compile(r"[1-9](?:c\.[1-9])?g\.[0-9]{1,3}gb(?:\+[a-z.]{1,10})?")


def text(value: object, what: str, example: str) -> str:
    """Return `value` if it is text; a number is not, since its writing may be lost."""
    if isinstance(value, str):
        return str(value)
    raise ValueError(f"{shown(value)} is not {what}; write {example}")


def whole(value: object) -> int:
    """Read a whole number."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _TOO_LARGE:
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise ValueError(f"{shown(value)} is not a whole number; write for example 4")


def decimal(value: object) -> float:
    """Read a finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < _TOO_LARGE else math.inf
        if math.isfinite(number):
            return number
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    raise ValueError(f"{shown(value)} is not a number; write for example 2.40")


def count(low: int) -> Callable[[object], int]:
    """Return a reader of whole numbers from `low` up."""

    def read(value: object) -> int:
        number = whole(value)
        if number < low:
            raise ValueError(f"{number} is too small; write {low} or more")
        return number

    return read


def priority(value: object) -> int:
    """Read a priority of the queue."""
    number = whole(value)
    if not 0 <= number <= 100:
        raise ValueError(f"{number} is not a priority; write a whole number from 0 to 100")
    return number


def amount(value: object) -> float:
    """Read a number that is not negative."""
    number = decimal(value)
    if number < 0:
        raise ValueError(f"{shown(number)} is negative; write 0 or more")
    return number


def price(value: object) -> float:
    """Read dollars per hour: an unknown price is not 0."""
    number = decimal(value)
    if number <= 0:
        raise ValueError(f"{shown(number)} is not a price; write dollars per hour, above 0")
    return number


def share(value: object) -> float:
    """Read a ratio."""
    number = decimal(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{shown(number)} is not a share; write a number from 0 to 1")
    return number


def flag(value: object) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _FLAGS:
        return _FLAGS[value.lower()]
    raise ValueError(f"{shown(value)} is neither true nor false; write true or false")


def duration(value: object) -> float:
    """Read a duration, seconds."""
    number_s = quantity.duration_s(text(_as_text(value), "a duration", "for example 5m or 90s"))
    if number_s > _LONGEST_S:
        raise ValueError(f"{shown(value)} is more than a year; write a shorter duration")
    return number_s


def positive_duration(value: object) -> float:
    """Read a duration that may not be 0, seconds."""
    number_s = duration(value)
    if number_s < _SHORTEST_S:
        raise ValueError(f"{shown(value)} is too short; write 100ms or more")
    return number_s


def latency(value: object) -> float:
    """Read a latency that is promised, seconds."""
    number_s = duration(value)
    if number_s <= 0:
        raise ValueError(f"{shown(value)} is no latency to promise; write 1ms or more")
    return number_s


def window(value: object) -> float:
    """Read how long a latency is measured before it is judged, seconds."""
    number_s = duration(value)
    if number_s < LEAST_WINDOW_S:
        raise ValueError(
            f"{shown(value)} is too short, since Ray tells its figures every 10 s; write 20s"
        )
    return number_s


def percentile(value: object) -> float:
    """Read a percentile."""
    number = decimal(value)
    if not 0 < number < 100:
        raise ValueError(f"{shown(number)} is not a percentile; write for example 95")
    return number


def kept_for(value: object) -> float | Literal["off"]:
    """Read how long something is kept, seconds; `off` keeps nothing."""
    # `false` is what YAML 1.1 makes of an unquoted off.
    return "off" if value == "off" or value is False else positive_duration(value)


def size(value: object) -> int:
    """Read a size, bytes."""
    return quantity.size_bytes(text(_as_text(value), "a size", "for example 80MB or 16GiB"))


def store_size(value: object) -> int | Literal["auto"]:
    """Read the size of an object store, bytes; `auto` leaves it to Ray."""
    if value == "auto":
        return "auto"
    number = size(value)
    # Ray 2.60 ends with "minimum allowed is 78643200 bytes" (measured).
    if number < 78_643_200:
        raise ValueError(f"{shown(value)} is less than Ray accepts; write 80MB or more, or auto")
    return number


def version(value: object) -> str:
    """Read a version that is made of numbers, such as a driver's."""
    words = text(_as_text(value), "a version", "numbers with dots, for example 535.104")
    if not re.fullmatch(r"[0-9]{1,6}([.][0-9]{1,6}){0,3}", words):
        raise ValueError(f"{shown(value)} is not a version; write for example 535.104")
    return words


def mig_profile(value: object) -> str:
    """Read the name of a profile of MIG devices."""
    words = text(_as_text(value), "a MIG profile", "what `nvidia-smi -L` shows, such as 1g.10gb")
    if not _MIG_PROFILE.fullmatch(words):
        raise ValueError(
            f"{shown(value)} is not a MIG profile; write what `nvidia-smi -L` shows, such as "
            "1g.10gb"
        )
    return words


def mps_clients(value: object) -> int:
    """Read among how many jobs a GPU is shared by MPS."""
    count = whole(value)
    if not 2 <= count <= MPS_CLIENTS_MAX:
        raise ValueError(
            f"{count} is no number of jobs that share a GPU; write 2 to {MPS_CLIENTS_MAX}"
        )
    return count


def gpus(value: object) -> GpuRequest:
    """Read the GPUs of one node."""
    if isinstance(value, GpuRequest):
        return value
    words = text(_as_text(value), "a GPU request", "TYPE:COUNT, for example A100:8")
    return quantity.gpu_request(words)


def gpus_or_auto(value: object) -> GpuRequest | Literal["auto"]:
    """Read the GPUs of a host; `auto` takes those that its driver lists."""
    return "auto" if value == "auto" else gpus(value)


def port_range(value: object) -> CountRange | None:
    """Read a range of ports; `None` for `auto`, which takes any free ones."""
    if isinstance(value, CountRange):
        return value
    if value == "auto":
        return None
    words = text(_as_text(value), "a range", "LOW..HIGH, for example 20000..29999")
    ports = quantity.count_range(words)
    if ports.low not in PORTS or ports.high not in PORTS:
        raise ValueError(f"{ports} leaves the usable ports; write a range within {PORTS}")
    return ports


def auto_port(value: object) -> int | Literal["auto"]:
    """Read a port; `auto` picks a free one."""
    if value == "auto":
        return "auto"
    try:
        number = whole(value)
    except ValueError as err:
        raise ValueError(f"{shown(value)} is not a port; write a number or auto") from err
    if number not in PORTS:
        raise ValueError(f"{number} is no usable port; write one within {PORTS}, or auto")
    return number


def optional_port(value: object) -> int | Literal["auto", "off"]:
    """Read a port of a service that can be switched off."""
    # `false` is what YAML 1.1 makes of an unquoted off.
    return "off" if value == "off" or value is False else auto_port(value)


def _as_text(value: object) -> object:
    """Return a bare number as text, so that the parser can say that its unit is missing."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return shown(value) if is_number else value
