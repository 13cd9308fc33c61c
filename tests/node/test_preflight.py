"""A node looks at its machine before it joins: real interpreters, a fake nvidia-smi and pip."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.node.folder import Phase
from tests.node.box import FAKE_RAY, Box, wait_until
from tests.node.controller import FakeController
from tests.sshd.ray import interpreter, nvidia_smi

pytestmark = pytest.mark.slow

MINOR = ".".join(platform.python_version_tuple()[:2])
EXPECTED = {"ray": "2.60.0", "python": MINOR, "gpus_within_s": 0}


@pytest.fixture
def controller() -> Iterator[FakeController]:
    with FakeController() as made:
        yield made


class Image:
    """A machine that may join: its interpreter, what is on its PATH, and its orders."""

    def __init__(self, instance: Box, controller: FakeController, path: Path) -> None:
        self.instance, self.controller = instance, controller
        self.tools = path / "tools"
        self.tools.mkdir()
        self.python = interpreter(path / "ray")
        token_file = instance.path / "join_token"
        token_file.write_text("one-time")
        join = {"url": controller.url, "instance_id": "i-1", "join_token_file": str(token_file)}
        instance.write(join=join)

    def has(self, name: str, text: str) -> None:
        file = self.tools / name
        file.write_text(text)
        file.chmod(0o755)

    def boot(self, phase: Phase, **expected: Any) -> str:
        """Start the node and return its problem, once it is in a phase."""
        words = list(self.instance.orders["command"])  # type: ignore[call-overload]
        self.instance.write(
            command=[self.python, str(FAKE_RAY), *words[2:]], expected={**EXPECTED, **expected}
        )
        path = f"{self.tools}:{os.environ['PATH']}"
        done = self.instance.call("start", env={"PATH": path})
        assert done.returncode == 0, done.stderr
        self.instance.wait_for(phase)
        return self.instance.problem

    def refused(self, **expected: Any) -> str:
        """Return why the machine cannot join, as it told the controller."""
        problem = self.boot(Phase.FAILED, **expected)
        wait_until(lambda: ("failed", problem) in self.controller.reports, "the report")
        assert self.controller.requests == []  # its join token is as good as new
        assert problem.startswith("this machine cannot join: ")
        return problem


@pytest.fixture
def image(instance: Box, controller: FakeController, tmp_path: Path) -> Image:
    return Image(instance, controller, tmp_path)


def test_a_machine_that_is_what_was_expected_joins(image: Image) -> None:
    image.has("nvidia-smi", "#!/bin/sh\nprintf '570.86.15\\n570.86.15\\n'\n")

    problem = image.boot(Phase.RUNNING, gpus=2, min_driver="570.86")

    assert problem == ""
    assert len(image.controller.requests) == 1
    wait_until(lambda: ("running", "") in image.controller.reports, "the report")


def test_another_ray_is_told_with_what_to_do(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")

    problem = image.refused()

    assert problem == (
        "this machine cannot join: this image has Ray 2.59.0 and the cluster has 2.60.0: install "
        f"ray[default]==2.60.0 in {image.python}, use another image, or allow it with the "
        "provider's `install_ray: true`"
    )


def test_an_image_without_ray_is_told(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "none", "")

    assert f"this image has no Ray in {image.python} and the cluster has" in image.refused()


def test_another_python_is_told(image: Image) -> None:
    problem = image.refused(python="3.8")

    assert f"this image has Python {platform.python_version()} and the cluster has 3.8" in problem


def test_another_patch_of_python_may_join(image: Image, tmp_path: Path) -> None:
    image.python = str(tmp_path / "python")
    Path(image.python).write_text(
        f'#!/bin/sh\n[ "$1" != -c ] || exec echo \'{{"python": "{MINOR}.99", "ray": '
        f'"2.60.0"}}\'\nexec {sys.executable} "$@"\n'
    )
    Path(image.python).chmod(0o755)

    assert image.boot(Phase.RUNNING) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exit 9", "nvidia-smi: (none)"),
        ("echo 'NVIDIA-SMI has failed: no driver'; exit 9", "NVIDIA-SMI has failed: no driver"),
        ("echo 'No devices were found'", "No devices were found"),
    ],
    ids=["silent", "fails", "none"],
)
def test_a_machine_whose_gpus_do_not_work_is_told(image: Image, text: str, words: str) -> None:
    image.has("nvidia-smi", f"#!/bin/sh\n{text}\n")

    problem = image.refused(gpus=1)

    assert "no GPU is seen on this machine" in problem
    assert words in problem
    assert "use an image with the NVIDIA driver" in problem


def test_an_image_without_a_driver_is_told(image: Image) -> None:
    problem = image.refused(gpus=8)

    assert "(nvidia-smi: nvidia-smi: No such file or directory) and its offer has 8" in problem


def test_a_machine_with_many_gpus_joins(image: Image) -> None:
    """There are machines of 16, whose list is longer than what is shown of a command."""
    image.has("nvidia-smi", "#!/bin/sh\nfor gpu in $(seq 16); do echo 570.86.15; done\n")

    assert image.boot(Phase.RUNNING, gpus=16) == ""


def test_an_interpreter_that_talks_before_and_after_is_understood(image: Image) -> None:
    site = next(Path(image.python).parents[1].rglob("site-packages"))
    words = "import atexit\nprint('hello')\natexit.register(print, 'bye')\n"
    (site / "sitecustomize.py").write_text(words)

    assert image.boot(Phase.RUNNING) == ""


def test_too_few_gpus_are_told(image: Image) -> None:
    image.has(
        "nvidia-smi",
        nvidia_smi(("GPU-1", "L4", 1), ("GPU-2", "L4", 1))
        .replace("GPU-1, L4, 1, ", "")
        .replace("GPU-2, L4, 1, ", ""),
    )

    assert "nvidia-smi shows 2 GPUs on this machine and its offer has 4" in image.refused(gpus=4)


@pytest.mark.parametrize(("driver", "least"), [("470.57.02", "535"), ("535.54", "535.104.05")])
def test_an_old_driver_is_told(image: Image, driver: str, least: str) -> None:
    image.has("nvidia-smi", f"#!/bin/sh\necho {driver}\n")

    problem = image.refused(gpus=1, min_driver=least)

    assert f"this image has NVIDIA driver {driver} and at least {least} is expected" in problem


SMI = "#!/bin/sh\n[ $# -gt 0 ] && exec echo 550.54\necho '| CUDA Version: 12.4 |'\n"


def test_a_driver_that_serves_too_old_a_cuda_is_told(image: Image) -> None:
    image.has("nvidia-smi", SMI)

    problem = image.refused(gpus=1, min_cuda="12.8")

    assert "its NVIDIA driver serves CUDA up to 12.4, and 12.8 is expected: use an im" in problem


def test_an_image_whose_cuda_is_too_new_for_its_driver_is_told(image: Image) -> None:
    image.has("nvidia-smi", SMI)
    image.has("nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.48'\n")

    problem = image.refused(gpus=1)

    assert "it brings CUDA 13.0, and its NVIDIA driver serves CUDA up to 12.4" in problem


def test_a_cuda_that_its_driver_serves_joins(image: Image) -> None:
    image.has("nvidia-smi", SMI)
    image.has("nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.61'\n")

    assert image.boot(Phase.RUNNING, gpus=1, min_cuda="12.4") == ""


def test_a_driver_that_comes_up_late_is_waited_for(image: Image) -> None:
    mark = image.tools / "asked"
    image.has(
        "nvidia-smi", f"#!/bin/sh\n[ -e {mark} ] && echo 570.1 || {{ touch {mark}; exit 9; }}"
    )

    assert image.boot(Phase.RUNNING, gpus=1, gpus_within_s=30) == ""


def test_gpus_that_are_numbers_only_are_not_looked_for(image: Image) -> None:
    image.has("nvidia-smi", f"#!/bin/sh\ntouch {image.tools}/asked\nexit 9\n")

    assert image.boot(Phase.RUNNING, gpus=0) == ""
    assert not (image.tools / "asked").exists()


def test_an_interpreter_that_is_not_there_is_told(image: Image, tmp_path: Path) -> None:
    image.python = str(tmp_path / "nowhere")

    problem = image.refused()

    assert f"{image.python} of this image does not run" in problem
    assert "No such file or directory" in problem


# --- installing Ray ------------------------------------------------------------------------------


def pip(image: Image, text: str) -> dict[str, Any]:
    """Put a pip on the machine; return what must be in the orders for it."""
    image.has("pip", f"#!/bin/sh\n{text}\n")
    return {"install": [str(image.tools / "pip"), "install", "ray[default]==2.60.0"]}


def test_ray_is_installed_where_that_is_allowed(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")
    about = next((tmp_path / "old").rglob("ray-2.59.0.dist-info"))
    new = about.with_name("ray-2.60.0.dist-info")
    text = f'echo "$@" > {image.tools}/said; mv {about} {new}; sed -i s/2.59/2.60/ {new}/METADATA'

    assert image.boot(Phase.RUNNING, **pip(image, text)) == ""

    assert (image.tools / "said").read_text() == "install ray[default]==2.60.0\n"
    assert "installing" in (image.instance.path / "node.log").read_text()


def test_an_install_that_fails_is_told_in_its_own_words_without_passwords(
    image: Image, tmp_path: Path
) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")
    text = "echo 'ERROR: no route to https://bob:hunter2@index.example/simple'; exit 1"

    problem = image.refused(**pip(image, text))

    assert "this image has Ray 2.59.0 and the cluster has 2.60.0, and installing it fail" in problem
    assert "ERROR: no route to https://***@index.example/simple" in problem
    assert "hunter2" not in problem


def test_an_install_that_hangs_is_ended(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")

    problem = image.refused(**pip(image, "exec sleep 1000"), install_limit_s=1)

    assert "installing it did not finish in 1 s" in problem
    wait_until(lambda: len(image.instance.everything()) == 2, "the end of pip")


def test_an_install_that_changes_nothing_is_told(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")

    assert "though pip said that it installed it" in image.refused(**pip(image, "exit 0"))


def test_a_ray_that_is_right_is_not_installed_again(image: Image) -> None:
    assert image.boot(Phase.RUNNING, **pip(image, "exit 1")) == ""


def test_a_machine_that_is_told_to_end_while_it_installs_ends(image: Image, tmp_path: Path) -> None:
    image.python = interpreter(tmp_path / "old", "2.59.0")
    image.boot(Phase.INSTALLING, **pip(image, "exec sleep 1000"))

    done = image.instance.call("stop")

    assert (done.returncode, done.stderr) == (0, "")
    assert image.instance.everything() == []
