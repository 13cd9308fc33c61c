"""A training that can be stopped at any time and goes on elsewhere.

    python train.py --steps 600 [--seconds 0.1]

Uses PyTorch if it is installed (on a GPU with mixed precision and accumulated gradients), else a
small model in plain Python: the loop and the contract are the same. Checkpoints go to a folder, or
to any URL that fsspec knows, if that is installed. Runs without hybrid, too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import hybrid

SAVE_EVERY = 100
ACCUMULATED = 4


class Trainer(Protocol):
    """A model with its optimizer and everything else that a step depends on."""

    def step(self) -> float:
        """Train once; return the loss."""
        ...

    def dump(self) -> bytes:
        """Return everything that `load` needs."""
        ...

    def load(self, raw: bytes) -> None:
        """Go on from there."""
        ...


class PlainTrainer:
    """Fits a line in plain Python."""

    def __init__(self) -> None:
        self._random = random.Random(0)
        self._weight = self._bias = 0.0

    def step(self) -> float:
        """See `Trainer.step`."""
        loss = 0.0
        for _ in range(ACCUMULATED):
            x = self._random.uniform(-1, 1)
            error = self._weight * x + self._bias - (3 * x + 1)
            self._weight -= 0.02 * error * x
            self._bias -= 0.02 * error
            loss += error * error / ACCUMULATED
        return loss

    def dump(self) -> bytes:
        """See `Trainer.dump`."""
        state = self._random.getstate()
        return json.dumps([self._weight, self._bias, state]).encode()

    def load(self, raw: bytes) -> None:
        """See `Trainer.load`."""
        self._weight, self._bias, (version, words, gauss) = json.loads(raw)
        self._random.setstate((version, tuple(words), gauss))


class TorchTrainer:
    """A small network; on a GPU with mixed precision."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        torch.manual_seed(0)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        layers = torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
        self._model = torch.nn.Sequential(*layers).to(self._device)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)
        self._scaler = torch.amp.GradScaler(self._device, enabled=self._device == "cuda")

    def step(self) -> float:
        """See `Trainer.step`."""
        torch, total = self._torch, 0.0
        for _ in range(ACCUMULATED):
            x = torch.randn(256, 64, device=self._device)
            with torch.autocast(self._device, torch.float16, enabled=self._device == "cuda"):
                loss = ((self._model(x)[:, 0] - x.sum(dim=1)) ** 2).mean() / ACCUMULATED
            self._scaler.scale(loss).backward()
            total += float(loss)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        return total

    def dump(self) -> bytes:
        """See `Trainer.dump`."""
        state: dict[str, Any] = {name: part.state_dict() for name, part in self._parts()}
        state["random"] = self._torch.get_rng_state()
        if self._device == "cuda":
            state["random_cuda"] = self._torch.cuda.get_rng_state()
        buffer = io.BytesIO()
        self._torch.save(state, buffer)
        return buffer.getvalue()

    def load(self, raw: bytes) -> None:
        """See `Trainer.load`."""
        state = self._torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
        for name, part in self._parts():
            if state[name]:  # the scaler of a CPU has none
                part.load_state_dict(state[name])
        self._torch.set_rng_state(state["random"])
        if self._device == "cuda" and "random_cuda" in state:
            self._torch.cuda.set_rng_state(state["random_cuda"])

    def _parts(self) -> list[tuple[str, Any]]:
        return [
            ("model", self._model),
            ("optimizer", self._optimizer),
            ("scaler", self._scaler),
        ]


def write(url: str, content: bytes) -> None:
    """Write a whole file or none: a checkpoint that is half there must not look like one."""
    if "://" in url:
        import fsspec

        with fsspec.open(url, "wb") as file:
            file.write(content)
        return
    path = Path(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read(url: str) -> bytes:
    if "://" in url:
        import fsspec

        with fsspec.open(url, "rb") as file:
            content: bytes = file.read()
        return content
    return Path(url).read_bytes()


def save(trainer: Trainer, step: int) -> bool:
    """Save and confirm; a save that fails is no reason to stop training."""
    url = f"{(hybrid.checkpoint_url() or 'checkpoints').rstrip('/')}/step-{step:06d}.ckpt"
    try:
        write(url, trainer.dump())
    except OSError as error:
        print(f"step {step}: not saved, going on: {error}", flush=True)
        return False
    hybrid.checkpoint_saved(url, step=step)  # only now may it be stopped
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=0.0, help="least length of a step")
    options = parser.parse_args()
    trainer: Trainer = TorchTrainer() if find_spec("torch") else PlainTrainer()
    step = 0
    start = hybrid.resume_from()
    if start:
        trainer.load(read(start))
        step = int(start.rpartition("step-")[2].partition(".")[0])
    attempt = os.environ.get("HYBRID_ATTEMPT", "1")
    print(f"attempt {attempt} begins after step {step}, {type(trainer).__name__}", flush=True)
    loss = 0.0
    while step < options.steps:
        loss = trainer.step()
        step += 1
        time.sleep(options.seconds)
        if step % SAVE_EVERY == 0:
            print(f"step {step}: loss {loss:.1e}", flush=True)
            save(trainer, step)
        if hybrid.checkpoint_requested() and save(trainer, step):
            print(f"step {step}: saved, since it was asked to", flush=True)
            hybrid.checkpoint_exit()
    save(trainer, step)
    print(f"done after step {step}, loss {loss:.1e}", flush=True)


if __name__ == "__main__":
    main()
