"""Asks the policy simulator, which is a program of Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.terraform.tools import simulator

SCRIPT = Path(__file__).with_name("simulate.mjs")
Context = dict[str, str | list[str]]


@dataclass(frozen=True)
class Question:
    """One thing that IAM is asked about one call; a call is allowed when all of it are.

    Attributes:
        action: Such as `ec2:RunInstances`.
        resource: The ARN of what it is done to, or `*`.
        context: Values of condition keys.
    """

    action: str
    resource: str
    context: Context = field(default_factory=dict)

    def but(
        self,
        changes: Mapping[str, str | list[str] | None] = MappingProxyType({}),
        *,
        resource: str = "",
    ) -> Question:
        """Return the same with other values of condition keys; `None` leaves one out."""
        merged = {**self.context, **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        return Question(self.action, resource or self.resource, kept)

    def __str__(self) -> str:
        return f"{self.action} on {self.resource.rpartition(':')[2]}"


@dataclass(frozen=True)
class Answers:
    """What the simulator says.

    Attributes:
        is_allowed: For each policy, whether each question is allowed.
        unknown: For each policy, its actions and condition keys that AWS does not have.
    """

    is_allowed: Mapping[str, Sequence[bool]]
    unknown: Mapping[str, Sequence[str]]


def ask(
    policies: Mapping[str, Mapping[str, Any]],
    questions: Sequence[Question],
    chosen: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Answers:
    """Return what policies say to questions.

    Args:
        policies: By names of your own.
        questions: For all of them.
        chosen: Places of the questions for a policy that is not asked them all.

    Raises:
        AssertionError: A question is none that AWS could be asked: no such action, resource,
            or condition key for them. Then its answer would mean nothing.
    """
    folder = simulator()
    script = shutil.copy(SCRIPT, folder)
    asked = [vars(question) for question in questions]
    done = subprocess.run(
        ["node", script],
        input=json.dumps({"policies": policies, "questions": asked, "chosen": dict(chosen)}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, answers in found["answers"].items():
        own = [questions[place] for place in chosen.get(name, range(len(questions)))]
        for question, answer in zip(own, answers, strict=True):
            assert "error" not in answer, f"{question}: {answer['error']}"
            assert answer["ignored"] == [], f"{question} knows no {answer['ignored']}"
    return Answers(
        {name: [a["is_allowed"] for a in answers] for name, answers in found["answers"].items()},
        found["unknown"],
    )
