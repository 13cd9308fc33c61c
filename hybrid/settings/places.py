"""Where the configuration and the state of clusters are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from hybrid.settings.problem import fault
from hybrid.settings.variables import CONFIG, HOME, TRACES

FILE_NAME = "hybrid.yaml"

EMBEDDED = "configs/local.yaml (embedded)"
"""Name of the configuration that is used when there is no file."""


def home(env: Mapping[str, str]) -> Path:
    """Return the folder that holds the state folders of all clusters."""
    if env.get(HOME):
        return Path(_expanded(env[HOME], HOME, env)).absolute()
    return Path(_expanded("~", "HOME", env)).absolute() / ".hybrid"


def traces(env: Mapping[str, str]) -> Path | None:
    """Return the folder with downloaded traces, `HYBRID_TRACES`; `None` where it is not set."""
    if not env.get(TRACES):
        return None
    return Path(_expanded(env[TRACES], TRACES, env)).absolute()


def find_config(path: Path | None, env: Mapping[str, str]) -> tuple[Path, str]:
    """Return the configuration file to read, and its name in messages.

    The path given, else `HYBRID_CONFIG`, else `hybrid.yaml` in the current folder, else the
    embedded default.

    Raises:
        SettingsError: The choice is doubtful.
    """
    if path is not None:
        return _expanded_path(path, "the path given", env), str(path)
    if env.get(CONFIG):
        return _expanded_path(Path(env[CONFIG]), CONFIG, env), env[CONFIG]
    local = Path(FILE_NAME)
    if local.exists() or local.is_symlink():
        return local, FILE_NAME
    other = Path("hybrid.yml")
    if other.exists():
        raise fault(str(other), f"this name is not looked for; rename it to {FILE_NAME}")
    return packaged("local.yaml"), EMBEDDED


def packaged(name: str) -> Path:
    """Return a configuration that comes with the program, such as `local.yaml`."""
    return Path(str(files("hybrid").joinpath("configs", name)))


def _expanded_path(path: Path, what: str, env: Mapping[str, str]) -> Path:
    return Path(_expanded(str(path), what, env))


def _expanded(text: str, what: str, env: Mapping[str, str]) -> str:
    """Return `text` with `~` replaced, from `env` rather than from this process."""
    if text != "~" and not text.startswith("~/"):
        return text
    home_text = env.get("HOME")
    if not home_text:
        raise fault(
            what, "the variable HOME is not set, so ~ means nothing; set HOME or HYBRID_HOME"
        )
    return home_text + text[1:]
