"""Which GPUs of a host work may use: what the configuration says, held against what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.adapters.ssh_fleet.facts import Gpu, Gpus, MigDevice
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
        parts: MIG devices of them that are used instead; empty for whole cards.
        mig: Profile of those.
        mps: Path of the program that controls MPS; `""` for no MPS.
        mps_clients: Among how many jobs each GPU is shared by it.
    """

    taken: tuple[Gpu, ...] = ()
    problem: str = ""
    remedy: str = ""
    parts: tuple[MigDevice, ...] = ()
    mig: str = ""
    mps: str = ""
    mps_clients: int = 0

    @property
    def types(self) -> dict[str, int]:
        """How many of each type there are, in the order of the driver."""
        return dict(Counter(gpu.accelerator for gpu in self.taken))

    @property
    def shape(self) -> Shape:
        """Ray's resources for them."""
        if self.mig:
            # No type: who asks for an A100 wants a whole one.
            return {"GPU": len(self.parts)}
        types = dict.fromkeys(gpu_names.ray_type(name) for name in self.types)
        # As Ray does on a machine with such GPUs: tasks ask for a share of it.
        return {"GPU": len(self.taken), **{f"accelerator_type:{name}": 1 for name in types}}

    @property
    def label(self) -> str:
        """The type, when there is just one."""
        names = list(self.types)
        if len(names) != 1:
            return ""
        return f"{names[0]}-MIG-{self.mig}".replace("+", "-") if self.mig else names[0]

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the node: its type, and how its GPUs are shared."""
        labels = {"accelerator": self.label} if self.label else {}
        if self.mig:
            labels |= {"gpu-sharing": "mig", "mig-profile": self.mig.replace("+", "-")}
        if self.mps:
            labels |= {"gpu-sharing": "mps", "mps-clients": str(self.mps_clients)}
        return labels

    @property
    def sharing(self) -> str:
        """How they are shared, in words that follow what they are; `""` when they are not."""
        if self.mig:
            return f" as {len(self.parts)} MIG devices {self.mig}"
        return f", each shared among {self.mps_clients} by MPS" if self.mps else ""

    @property
    def uuids(self) -> str:
        """The value of CUDA_VISIBLE_DEVICES.

        Not by index: that means different cards to CUDA and to nvidia-smi when they are mixed.
        """
        return ",".join(gpu.uuid for gpu in (self.parts or self.taken))


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
