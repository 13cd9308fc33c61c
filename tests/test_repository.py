"""Tests of the repository itself: what is in it, what it imports, and what it must not hold."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEAVY = (
    "alembic",
    "baidubce",
    "boto3",
    "botocore",
    "fastapi",
    "google",
    "grpc",
    "ray",
    "sqlalchemy",
    "uvicorn",
)
MODULES = sorted(
    path for package in ("hybrid", "providers") for path in (ROOT / package).rglob("*.py")
)
# Words, not hosts: any URL of a place that serves packages, and options that name one.
REGISTRY = re.compile(
    r"(?:https?:)?//[^\s/'\"]*(?:pypi|npmjs|artifactory|nexus|devpi|crates|mirror)[^\s/'\"]*"
    r"|--(?:extra-)?index-url|--find-links",
    re.IGNORECASE,
)
HOME = re.compile(r"/(?:home|Users)/[\w.-]+/[\w.-]|/root/[\w.-]")


def tracked() -> list[Path]:
    """Return the files that belong to the repository."""
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    assert len(paths) > 50
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def headings(path: Path) -> list[str]:
    """Return the levels of a Markdown file's headings, code blocks left out."""
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    return [match[1] for match in re.finditer(r"^(#+) ", text, flags=re.MULTILINE)]


def test_both_readmes_have_the_same_headings() -> None:
    english = headings(ROOT / "README.md")

    assert english
    assert headings(ROOT / "README.zh-CN.md") == english


def test_no_file_is_larger_than_a_mebibyte() -> None:
    large = [path.name for path in tracked() if path.stat().st_size > 2**20]

    assert large == []


@pytest.mark.parametrize("pattern", [REGISTRY, HOME], ids=["registry", "home"])
def test_no_file_names_a_registry_or_a_persons_folder(pattern: re.Pattern[str]) -> None:
    found = []
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        if path != Path(__file__):  # holds the patterns
            found += [f"{path.relative_to(ROOT)}: {hit[0]}" for hit in pattern.finditer(text)]

    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_owns(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_every_package_has_a_place_in_the_import_contracts() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(rule for rule in contracts if rule["type"] == "layers")["layers"]
    placed = {name.strip(" ()") for layer in layers for name in layer.split("|")}
    there = {
        f"hybrid.{path.stem}"
        for path in (ROOT / "hybrid").iterdir()
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and path.stem != "__init__")
    }

    assert there - placed == set()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *PROJECT["project"]["scripts"].items(),
        *PROJECT["project"]["entry-points"]["hybrid.providers"].items(),
    ],
)
def test_an_entry_point_leads_to_something_to_call(name: str, target: str) -> None:
    assert callable(EntryPoint(name=name, value=target, group="").load())


def test_the_installed_providers_are_those_of_the_project() -> None:
    installed = {point.name: point.value for point in entry_points(group="hybrid.providers")}

    assert installed == PROJECT["project"]["entry-points"]["hybrid.providers"]


def test_everything_that_is_installed_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    names = {re.split("==", pin)[0].lower().replace("_", "-") for pin in pins}

    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin) for pin in pins)
    for words in (PROJECT["project"]["dependencies"], *_extras("dev", "postgres")):
        for requirement in words:
            name = re.match(r"[A-Za-z0-9._-]+", requirement)
            assert name
            if name[0] != "hybrid-burst":
                assert name[0].lower().replace("_", "-") in names, requirement


def _extras(*names: str) -> list[list[str]]:
    return [PROJECT["project"]["optional-dependencies"][name] for name in names]


def test_every_ray_that_can_be_installed_is_the_same_version() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    words = [PROJECT["project"]["dependencies"], *extras]
    versions = {
        requirement.partition("==")[2]
        for requirement in [item for group in words for item in group]
        if re.match(r"ray\b", requirement)
    }

    assert len(versions) == 1


@pytest.mark.parametrize("module", ["hybrid", "hybrid.cli.main", "hybrid.client"])
def test_the_command_line_loads_nothing_heavy(module: str) -> None:
    script = f"import sys, {module}; print(*sorted(set(sys.modules) & {set(HEAVY)!r}))"

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == ""


def test_the_version_is_the_same_everywhere() -> None:
    assert importlib.import_module("hybrid").__version__ == PROJECT["project"]["version"]


@pytest.mark.slow
def test_a_wheel_holds_everything_the_program_reads(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for path in [*tracked(), ROOT / "hybrid" / "configs"]:
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            target.symlink_to(path.readlink())
        else:
            target.write_bytes(path.read_bytes())

    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(copy)], check=True, capture_output=True
    )

    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {str(path.relative_to(ROOT)) for path in MODULES if path in set(tracked())}
    configs = {f"hybrid/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    prices = {f"hybrid/catalog/{path.name}" for path in (ROOT / "hybrid" / "catalog").iterdir()}
    read = {"hybrid/py.typed", "hybrid/sim/traces/sample.csv.gz"}
    assert code | configs | prices | read <= names
    assert not any(name.startswith("tests/") for name in names)
