"""Numbers and shapes as people read them: never in powers of ten, never with a false digit."""

from __future__ import annotations

from hybrid.core.models import Shape

_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (1, "B"))


def number(amount: float) -> str:
    """Return `4`, `0.5` or `1250000`: at most four decimals, and no zeros at the end."""
    text = f"{amount:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def plural(count: float, word: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def shape_text(shape: Shape) -> str:
    """Return a shape as people write it: `4 GPU, 8 CPU, 2 GiB memory`."""
    names = sorted((n for n in shape if shape[n]), key=lambda n: (n != "GPU", n != "CPU", n))
    return ", ".join(_amount_text(name, shape[name]) for name in names) or "nothing"


def age_text(age_s: float | None) -> str:
    """Return `12 s`, or words for an age that is not known."""
    return "an unknown time" if age_s is None else f"{age_s:.0f} s"


def _amount_text(name: str, amount: float) -> str:
    if name not in ("memory", "object_store_memory"):
        return f"{number(amount)} {name}"
    size, unit = next(((s, u) for s, u in _SIZES if amount >= s), _SIZES[-1])
    return f"{number(round(amount / size, 2))} {unit} {name}"
