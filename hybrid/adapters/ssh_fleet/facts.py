"""What a look at a host found out."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict, Field

from hybrid.core import gpu_names
from hybrid.core.models import Model


class _Heard(Model):
    """From a host: what we do not know is left out, so that programs may say more."""

    model_config = ConfigDict(extra="ignore")


class MigDevice(_Heard):
    """A part of a card that is a GPU of its own.

    Attributes:
        profile: As the driver has it, such as `1g.10gb`.
    """

    profile: str
    uuid: str


class Gpu(_Heard):
    """A graphics card.

    Attributes:
        name: As its driver has it, such as `NVIDIA GeForce RTX 3070`.
        memory_mib: `None` when the driver does not say.
        is_mig_on: It is cut into parts; as a whole nothing can use it.
        parts: Its MIG devices.
    """

    uuid: str
    name: str
    memory_mib: int | None = None
    driver: str = ""
    is_mig_on: bool = False
    parts: tuple[MigDevice, ...] = ()

    @property
    def accelerator(self) -> str:
        """Our name of it, such as `RTX-3070` or `A100-80GB`."""
        return gpu_names.named(self.name, self.memory_gib)

    @property
    def memory_gib(self) -> float | None:
        """Its memory."""
        return None if self.memory_mib is None else self.memory_mib / 1024


class Gpus(_Heard):
    """What `nvidia-smi` says.

    Attributes:
        cuda: Newest CUDA that the driver can run; `""` when unknown.
        compiler: The version of CUDA's compiler there; `""` without one.
        mps: Path of the program that controls MPS; `""` without one.
        problem: Why it says nothing.
        on_bus_count: NVIDIA's cards that the machine has, with or without a driver.
    """

    found: tuple[Gpu, ...] = ()
    cuda: str = ""
    compiler: str = ""
    mps: str = ""
    problem: str = ""
    on_bus_count: int = 0


class Facts(_Heard):
    """A host, as it described itself.

    Attributes:
        network: Its network namespace: a container has its own.
        files_free: How many more files fit, by folder; not every disk has such a limit.
        is_tmp_writable, is_tmp_noexec: Of the folder where Ray has its files.
        python: Path of the interpreter that answered.
        node_ip: Its address on the way to the head; `""` when there is no way.
        dials: Whether it reached something, by what that is: `""`, or why not.
        unopened: What it could open no port for.
        clock_ahead_s: How far its clock is ahead of ours.
        unreached: Its ports that we did not reach, by what they are for, and why.
    """

    os: str
    kernel: str
    machine: str
    hostname: str
    user: str
    uid: int
    home: str
    is_home_writable: bool
    machine_id: str
    boot_id: str
    network: str
    python: str
    python_version: str
    ray_version: str
    cpu_count: int
    memory_bytes: int | None
    memory_available_bytes: int | None
    disk_free_bytes: Mapping[str, int]
    files_free: Mapping[str, int] = Field(default_factory=dict)
    is_tmp_writable: bool = True
    is_tmp_noexec: bool = False
    shm_free_bytes: int | None
    gpus: Gpus
    node_ip: str = ""
    dials: Mapping[str, str] = Field(default_factory=dict)
    unopened: tuple[str, ...] = ()
    clock_ahead_s: float | None = None
    unreached: Mapping[str, str] = Field(default_factory=dict)

    @property
    def identity(self) -> str:
        """What no two machines share, nor two containers of one machine."""
        return f"{self.machine_id}/{self.boot_id}/{self.network}"
