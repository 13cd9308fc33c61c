"""What a job knows of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hybrid
from hybrid.job.context import NOTES, context

ALONE = """
import importlib, pkgutil, sys

class OnlyStandard:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top != "hybrid" and top not in sys.stdlib_module_names:
            raise ImportError(f"{name} is not in the standard library")

sys.path.insert(0, sys.argv[1])
sys.meta_path.insert(0, OnlyStandard())
import hybrid.job
for module in pkgutil.iter_modules(hybrid.job.__path__):
    if module.name != "__main__":
        importlib.import_module(f"hybrid.job.{module.name}")
assert hybrid.resume_from() is None
assert not hybrid.checkpoint_requested()
"""


def test_the_kit_needs_the_standard_library_alone() -> None:
    root = str(Path(hybrid.__file__).parents[1])
    command = [sys.executable, "-I", "-S", "-c", ALONE, root]
    done = subprocess.run(command, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr


def test_outside_of_a_job_there_is_no_context() -> None:
    assert context({}) is None
    assert context({"HYBRID_JOB_ID": "", "HYBRID_ATTEMPT": "3"}) is None


def test_a_job_needs_to_say_little() -> None:
    here = context({"HYBRID_JOB_ID": "j-1"})
    assert here is not None
    assert (here.attempt, here.slots, here.bundle, here.nodes) == (1, (), {}, 0)
    assert (here.checkpoint_url, here.resume_from, here.notes) == ("", "", None)


def test_all_of_it_is_read(tmp_path: Path) -> None:
    here = context(
        {
            "HYBRID_JOB_ID": "j-1",
            "HYBRID_ATTEMPT": "3",
            "HYBRID_SLOTS": '[["n-1", 8], ["n-2", 8]]',
            "HYBRID_GROUP_BUNDLE": '{"GPU": 8, "CPU": 16}',
            "HYBRID_NODES": "2",
            "HYBRID_CHECKPOINT_URL": "s3://team/j-1",
            "HYBRID_RESUME_FROM": "s3://team/j-1/step-5",
            NOTES: str(tmp_path),
        }
    )
    assert here is not None
    assert here.slots == (("n-1", 8.0), ("n-2", 8.0))
    assert (here.attempt, here.bundle, here.nodes) == (3, {"GPU": 8, "CPU": 16}, 2)
    assert (here.checkpoint_url, here.resume_from) == ("s3://team/j-1", "s3://team/j-1/step-5")
    assert here.notes == tmp_path


def test_a_folder_of_another_machine_is_no_folder_for_notes(tmp_path: Path) -> None:
    here = context({"HYBRID_JOB_ID": "j-1", NOTES: str(tmp_path / "elsewhere")})
    assert here is not None
    assert here.notes is None
