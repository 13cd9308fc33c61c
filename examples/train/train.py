"""A training that can be stopped and goes on elsewhere; see docs/checkpoints.md.

With PyTorch it uses a GPU if there is one, with automatic mixed precision and gradient
accumulation. Without PyTorch it fits the same line in plain Python. The loop is the same.
Run by hybrid as a job (run.py beside it), or by hand: python train.py --steps 50
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlparse

import hybrid


class Model(Protocol):
    """What the loop needs."""

    def step(self, rng: random.Random) -> float:
        """Learn from one batch; return its loss."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint has to hold."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        ...


class PlainModel:
    """y = 3x + 1, learned with nothing but Python."""

    def __init__(self) -> None:
        self.w = self.b = 0.0

    def step(self, rng: random.Random) -> float:
        """See `Model`."""
        xs = [rng.uniform(-1, 1) for _ in range(64)]
        errors = [self.w * x + self.b - (3 * x + 1) for x in xs]
        self.w -= 0.1 * 2 * sum(e * x for e, x in zip(errors, xs, strict=True)) / len(xs)
        self.b -= 0.1 * 2 * sum(errors) / len(xs)
        return sum(e * e for e in errors) / len(xs)

    def state(self) -> dict[str, Any]:
        """See `Model`."""
        return {"w": self.w, "b": self.b}

    def load(self, state: dict[str, Any]) -> None:
        """See `Model`."""
        self.w, self.b = state["w"], state["b"]


class TorchModel:
    """The same line; on a GPU with mixed precision, four small batches for each step."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.has_gpu = torch.cuda.is_available()
        self.device = "cuda" if self.has_gpu else "cpu"
        self.batches = 4 if self.has_gpu else 1
        self.net = torch.nn.Linear(1, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.has_gpu)

    def step(self, rng: random.Random) -> float:
        """See `Model`."""
        torch, total = self.torch, 0.0
        self.optimizer.zero_grad()
        for _ in range(self.batches):
            xs = [[rng.uniform(-1, 1)] for _ in range(64 // self.batches)]
            x = torch.tensor(xs, device=self.device)
            with torch.autocast(self.device, dtype=torch.float16, enabled=self.has_gpu):
                loss = torch.nn.functional.mse_loss(self.net(x), 3 * x + 1) / self.batches
            self.scaler.scale(loss).backward()
            total += float(loss.detach())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return total

    def state(self) -> dict[str, Any]:
        """See `Model`."""
        net = {name: value.tolist() for name, value in self.net.state_dict().items()}
        return {"net": net, "scaler": self.scaler.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """See `Model`."""
        net = {name: self.torch.tensor(value) for name, value in state["net"].items()}
        self.net.load_state_dict(net)
        self.scaler.load_state_dict(state["scaler"])


def make_model() -> Model:
    try:
        import torch
    except ImportError:
        return PlainModel()
    return TorchModel(torch)


def save(folder: Path, step: int, model: Model) -> Path:
    """Write a whole checkpoint under a new name, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{step}.json"
    part = target.with_suffix(".part")
    part.write_text(json.dumps({"step": step, "model": model.state()}))
    part.replace(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--step-seconds", type=float, default=0.2, help="time of a step, pretended")
    options = parser.parse_args()
    folder = Path(urlparse(hybrid.checkpoint_url() or "checkpoints").path)
    model, step, loss = make_model(), 0, float("nan")
    if found := hybrid.resume_from():
        saved = json.loads(Path(urlparse(found).path).read_text())
        step = saved["step"]
        model.load(saved["model"])
    attempt = os.environ.get("HYBRID_ATTEMPT", "1")
    print(f"attempt {attempt}: {type(model).__name__} begins at step {step}", flush=True)
    while step < options.steps:
        time.sleep(options.step_seconds)
        loss = model.step(random.Random(step))  # the same batch, wherever the step is done
        step += 1
        if hybrid.checkpoint_requested():
            try:
                hybrid.checkpoint_saved(str(save(folder, step, model)), step=step)
            except OSError as error:  # a full disk, say: go on, and keep the last checkpoint
                print(f"cannot save: {error}", flush=True)
                continue
            print(f"saved at step {step}, as asked", flush=True)
            hybrid.checkpoint_exit()
    print(f"done: {step} steps, loss {loss:.2g}", flush=True)


if __name__ == "__main__":
    main()
