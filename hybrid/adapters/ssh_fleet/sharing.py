"""How a host's GPUs are shared: whole, cut by MIG, or among programs by MPS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hybrid.adapters.ssh_fleet.choosing import Choice
from hybrid.adapters.ssh_fleet.facts import Gpu, Gpus


def shared(choice: Choice, gpus: Gpus, *, mps_clients: int = 0, mig: str = "") -> Choice:
    """Return a choice with how its GPUs are shared, or with why they cannot be.

    Nothing is switched on a host: MIG needs root and resets the card, whatever runs on it. So its
    devices must be there; the remedy has the commands. MPS is a program of the node's own user.

    Args:
        choice: The cards.
        gpus: What the host has.
        mps_clients: Among how many jobs each is shared by MPS; 0 for no MPS.
        mig: Profile of the MIG devices that are used instead; `""` for whole cards.
    """
    if choice.problem or not choice.taken:
        return choice
    cut = [gpu for gpu in choice.taken if gpu.is_mig_on]
    if mig:
        return _parts(choice, mig)
    if cut:
        problem = f"MIG is on for {len(cut)} of its {len(choice.taken)} GPUs ({_listed(cut)}), and "
        problem += "nothing can use those as a whole"
        remedy = f"write `mig: {_example(cut)}` for the host, or switch it off there: "
        return _refused(problem, remedy + "`sudo nvidia-smi -i INDEX -mig 0`")
    if not mps_clients:
        return choice
    if not gpus.mps:
        return _refused(
            "mps is configured, but nvidia-cuda-mps-control is not there",
            "install the rest of NVIDIA's driver there (Debian: nvidia-cuda-mps), or remove mps",
        )
    return replace(choice, mps=gpus.mps, mps_clients=mps_clients)


def _parts(choice: Choice, mig: str) -> Choice:
    parts = tuple(part for gpu in choice.taken for part in gpu.parts if part.profile == mig)
    if parts:
        return replace(choice, parts=parts, mig=mig)
    make = f"`sudo nvidia-smi mig -i INDEX -cgi {mig} -C` for each of them, as often as it fits"
    cut = [gpu for gpu in choice.taken if gpu.is_mig_on]
    if not cut:
        return _refused(
            f"mig is {mig}, but MIG is on for none of its {len(choice.taken)} GPUs",
            f"while nothing runs there: `sudo nvidia-smi -i INDEX -mig 1`, then {make}; a card "
            "that cannot says so",
        )
    return _refused(f"mig is {mig}, but it has {_listed(cut)}", f"make them there: {make}")


def _listed(cut: Iterable[Gpu]) -> str:
    counts = Counter(part.profile for gpu in cut for part in gpu.parts)
    words = ", ".join(f"{count} x {profile}" for profile, count in sorted(counts.items()))
    return words or "no MIG device yet"


def _example(cut: Iterable[Gpu]) -> str:
    profiles = sorted(part.profile for gpu in cut for part in gpu.parts)
    return profiles[0] if profiles else "PROFILE"


def _refused(problem: str, remedy: str) -> Choice:
    return Choice(problem=problem, remedy=remedy)
