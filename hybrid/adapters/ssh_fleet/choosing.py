"""Which GPUs of a host work may use: what the configuration says, held against what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.adapters.ssh_fleet.facts import Gpu, Gpus
from hybrid.core import gpu_names
from hybrid.core.models import Shape
from hybrid.core.quantity import GpuRequest


@dataclass(frozen=True)
class Choice:
    """The GPUs that a host brings.

    Attributes:
        taken: Them, in the order of the driver.
        problem: Why the host does not have what is wanted; `""` when it has.
        remedy: What to do about that.
    """

    taken: tuple[Gpu, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def types(self) -> dict[str, int]:
        """How many of each type there are, in the order of the driver."""
        return dict(Counter(gpu.accelerator for gpu in self.taken))

    @property
    def shape(self) -> Shape:
        """Ray's resources for them."""
        types = dict.fromkeys(gpu_names.ray_type(name) for name in self.types)
        # As Ray does on a machine with such GPUs: tasks ask for a share of it.
        return {"GPU": len(self.taken), **{f"accelerator_type:{name}": 1 for name in types}}

    @property
    def label(self) -> str:
        """The type, when there is just one."""
        names = list(self.types)
        return names[0] if len(names) == 1 else ""

    @property
    def uuids(self) -> str:
        """The value of CUDA_VISIBLE_DEVICES.

        Not by index: that means different cards to CUDA and to nvidia-smi when they are mixed.
        """
        return ",".join(gpu.uuid for gpu in self.taken)


def choose(gpus: Gpus, wanted: GpuRequest | None, *, is_auto: bool = False) -> Choice:
    """Return the GPUs that a host brings.

    Args:
        gpus: What it has.
        wanted: What the configuration says; `None` for none.
        is_auto: The configuration takes whatever is there, but not nothing.
    """
    if is_auto:
        return Choice(gpus.found) if gpus.found else Choice((), *_nothing(gpus, "auto"))
    if wanted is None:
        return Choice()
    if not gpus.found:
        return Choice((), *_nothing(gpus, str(wanted)))
    fitting = [gpu for gpu in gpus.found if _fits(gpu, wanted)]
    if len(fitting) < wanted.count:
        has = described(gpus.found)
        return Choice(
            (),
            f"{wanted} are configured, but it has {has}",
            f"write `accelerators: auto`, or what is there; if a card is missing, see "
            f"`nvidia-smi` and `dmesg | grep -i nvrm` there ({gpus.on_bus_count} on its bus)",
        )
    return Choice(tuple(fitting[: wanted.count]))


def described(found: Sequence[Gpu]) -> str:
    """Return GPUs in words: `2 x RTX-3070, 1 x A100-80GB`."""
    counts = Counter(gpu.accelerator for gpu in found)
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "none"


def _fits(gpu: Gpu, wanted: GpuRequest) -> bool:
    if not wanted.accelerator:
        return True
    return gpu_names.is_same(wanted.accelerator, gpu.accelerator, gpu.memory_gib)


def _nothing(gpus: Gpus, wanted: str) -> tuple[str, str]:
    """Return problem and remedy of a host without a GPU that can be used."""
    words = gpus.problem or "nvidia-smi lists none"
    without = "or take `accelerators` away to have the host without GPUs"
    if gpus.on_bus_count:
        return (
            f"accelerators is {wanted}, and {gpus.on_bus_count} NVIDIA cards are on its bus, but "
            f"the driver does not work: {words}",
            f"install or reload NVIDIA's driver there until `nvidia-smi` lists them, {without}",
        )
    return (
        f"accelerators is {wanted}, but no GPU can be used there: {words}",
        f"install NVIDIA's driver there if it has a GPU, {without}",
    )
