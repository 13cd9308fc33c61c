"""Working directories: what is sent, and that equal folders give equal packages."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from hybrid.client.package import Package, pack
from hybrid.core.errors import ConfigError


def write(root: Path, *names: str, text: str = "x") -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names_in(package: Package) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(package.content)) as archive:
        return archive.namelist()


def test_equal_folders_give_equal_packages_whatever_the_times(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "b.py", "a.py", "sub/c.py")
    second = write(tmp_path / "b", "sub/c.py", "a.py", "b.py")
    os.utime(second / "a.py", (1, 1))

    assert pack(first) == pack(second)
    assert names_in(pack(first)) == ["a.py", "b.py", "sub/c.py"]


def test_other_content_or_mode_gives_another_name(tmp_path: Path) -> None:
    folder = write(tmp_path, "a.sh")
    before = pack(folder).name

    (folder / "a.sh").chmod(0o755)
    runnable = pack(folder).name
    write(folder, "a.sh", text="y")

    assert len({before, runnable, pack(folder).name}) == 3


def test_a_program_stays_runnable(tmp_path: Path) -> None:
    write(tmp_path, "run.sh")
    (tmp_path / "run.sh").chmod(0o755)

    with zipfile.ZipFile(io.BytesIO(pack(tmp_path).content)) as archive:
        mode = archive.getinfo("run.sh").external_attr >> 16

    assert mode & 0o777 == 0o755


def test_the_usual_rubbish_stays_at_home(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", "a/__pycache__/x.pyc", ".venv/bin/python", "a/b.pyc", "a/b.py")

    assert names_in(pack(tmp_path)) == ["a/b.py"]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("data", ["keep.py", "sub/keep.csv"]),
        ("/data", ["keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("*.bin", ["keep.py", "sub/keep.csv"]),
        ("sub/", ["data/a.bin", "data/deep/b.bin", "keep.py"]),
        (
            "keep.py/",
            ["data/a.bin", "data/deep/b.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv"],
        ),
        ("data/*\n!data/a.bin", ["data/a.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("**/deep", ["data/a.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("data/**/b.bin", ["data/a.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("[ab].bin", ["keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("[!c].bin", ["keep.py", "sub/data/c.bin", "sub/keep.csv"]),
        ("?.bin", ["keep.py", "sub/keep.csv"]),
        (
            "# data\n\n[x\n",
            ["data/a.bin", "data/deep/b.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv"],
        ),
    ],
)
def test_ignore_files_mean_what_they_mean_to_git(
    tmp_path: Path, rules: str, kept: list[str]
) -> None:
    write(tmp_path, "data/a.bin", "data/deep/b.bin", "keep.py", "sub/data/c.bin", "sub/keep.csv")
    (tmp_path / ".hybridignore").write_text(rules + "\n.hybridignore\n")

    assert names_in(pack(tmp_path)) == kept


def test_an_ignore_file_in_a_folder_is_about_that_folder(tmp_path: Path) -> None:
    write(tmp_path, "a/x.bin", "b/x.bin")
    (tmp_path / "a" / ".gitignore").write_text("*.bin\n.gitignore\n")

    assert names_in(pack(tmp_path)) == ["b/x.bin"]


def test_links_are_packed_as_what_they_point_at(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", "lib/m.py", text="outside")
    folder = write(tmp_path / "work", "a.py")
    (folder / "m.py").symlink_to(outside / "lib" / "m.py")
    (folder / "lib").symlink_to(outside / "lib")
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    (folder / "loop").symlink_to(folder)

    package = pack(folder)

    assert names_in(package) == ["a.py", "lib/m.py", "m.py"]
    with zipfile.ZipFile(io.BytesIO(package.content)) as archive:
        assert archive.read("m.py") == b"outside"


def test_links_that_lead_nowhere_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    for name, target in (
        ("self", "self"),
        ("there", "back"),
        ("back", "there"),
        ("through-a-file", "a.py/x"),
        ("long", "x" * 300),
        (".gitignore", ".gitignore"),
    ):
        (tmp_path / name).symlink_to(target)

    assert names_in(pack(tmp_path)) == ["a.py"]


def test_pipes_and_sockets_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe")

    assert names_in(pack(tmp_path)) == ["a.py"]


def test_unicode_and_odd_names_arrive(tmp_path: Path) -> None:
    write(tmp_path, "\u8bad\u7ec3/\u6a21 \u578b.py", "-rf", "a'b$(x).py")

    assert sorted(names_in(pack(tmp_path))) == sorted(
        ["-rf", "a'b$(x).py", "\u8bad\u7ec3/\u6a21 \u578b.py"]
    )


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff.py")).write_text("x")

    with pytest.raises(ConfigError, match=r"bad\\udcff\.py.*rename"):
        pack(tmp_path)


def test_an_empty_folder_is_a_package_too(tmp_path: Path) -> None:
    assert pack(tmp_path).content.startswith(b"PK\x05\x06")


@pytest.mark.parametrize(
    "make", [lambda p: None, lambda p: p.write_text("x")], ids=["missing", "file"]
)
def test_what_is_not_a_folder_is_refused(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "x")

    with pytest.raises(ConfigError, match=r"working_dir: .*x"):
        pack(tmp_path / "x")


def test_too_much_is_refused_with_the_largest_files(tmp_path: Path) -> None:
    for name, size in (("big.bin", 90_000_000), ("bigger.bin", 95_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)

    with pytest.raises(ConfigError, match=r"185 MB.*bigger\.bin \(95 MB\).*\.hybridignore"):
        pack(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, "secret.py")
    (tmp_path / "secret.py").chmod(0)

    with pytest.raises(ConfigError, match=r"secret\.py cannot be read"):
        pack(tmp_path)
