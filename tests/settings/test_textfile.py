"""Tests of files that cannot be read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hybrid.core.errors import ConfigError
from hybrid.settings.textfile import read_text

NOBODY = 65_534


def refusal(path: Path) -> str:
    """Return why a file is refused."""
    with pytest.raises(ConfigError) as caught:
        read_text(path, "f.yaml")
    return str(caught.value)


def test_read_text_drops_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\xef\xbb\xbfname: \xe5\x8c\x97\r\n")

    assert read_text(file, "f.yaml") == "name: 北\r\n"


def test_read_text_names_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no") == "f.yaml: there is no such file; check the path given"


def test_read_text_refuses_a_folder(tmp_path: Path) -> None:
    assert "it is a folder; name the file in it" in refusal(tmp_path)


def test_read_text_refuses_a_pipe_instead_of_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "it is no ordinary file" in refusal(tmp_path / "pipe")


def test_read_text_says_when_permission_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("name: a")
    file.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:  # root may read everything
        os.seteuid(NOBODY)
    try:
        found = refusal(file)
    finally:
        if is_root:
            os.seteuid(0)
    assert "it may not be read by this user; check its permissions" in found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"a: 1\nb: \0\n",
            "it holds a NUL byte, so it is not text; is this the right file? (line 2)",
        ),
        (b"a: 1\nb: \xff\n", "it is not UTF-8 text; save it as UTF-8 (line 2)"),
        ("name: a".encode("utf-16"), "(line 1)"),
        (os.urandom(64) + b"\0", "is"),
        (b"#" * (1 << 20) + b"#", "it is longer than 1 MiB; is this the right file?"),
    ],
)
def test_read_text_refuses_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)

    assert message in refusal(tmp_path / "f")


def test_read_text_refuses_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    assert "it cannot be read" in refusal(loop)
    assert "it cannot be read" in refusal(Path("a\0b"))
    assert "it cannot be read" in refusal(tmp_path / ("x" * 300))
    assert not stat.S_ISREG(loop.lstat().st_mode)
