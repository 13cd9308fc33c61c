"""Which commands can run inside a placement group, and what is said of the others."""

from __future__ import annotations

import pytest

import hybrid
from hybrid.job.group import CommandError, program_of


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py", ["train.py"]),
        ("python3 train.py --lr 0.1 'two words'", ["train.py", "--lr", "0.1", "two words"]),
        ("/opt/conda/bin/python3.11 -m trainer --steps 5", ["-m", "trainer", "--steps", "5"]),
        (
            "python train.py 'a && $b' \"c; d\" e\\;f [1,2]",
            ["train.py", "a && $b", "c; d", "e;f", "[1,2]"],
        ),
    ],
)
def test_a_python_program_can(command: str, words: list[str]) -> None:
    assert program_of(command) == words


@pytest.mark.parametrize(
    "command",
    [
        "bash train.sh",
        "torchrun train.py",
        "LR=1 python train.py",
        "python",
        "python -c 'print(1)'",
        "python -m",
        "python -u train.py",
        "pythonic train.py",
        "python a.py && python b.py",
        "python a.py; python b.py",
        "python a.py | tee out",
        "python a.py &",
        "python a.py > out",
        "python a.py $HOME",
        'python a.py "$HOME"',
        "python a.py `hostname`",
        "python a.py\nrm b.py",
        "",
    ],
)
def test_what_is_none_is_refused_with_what_would_do(command: str) -> None:
    with pytest.raises(CommandError) as refused:
        program_of(command)
    assert "`python train.py ...`" in str(refused.value)
    assert repr(command) in str(refused.value)


def test_an_unreadable_command_is_refused_with_the_reason() -> None:
    with pytest.raises(CommandError, match="cannot be read: No closing quotation"):
        program_of("python train.py 'a")


def test_a_job_that_holds_no_nodes_has_no_group() -> None:
    with pytest.raises(RuntimeError, match="submit the job with nodes"):
        hybrid.gang()
