"""Puts the provider where `terraform init` finds it: a shim, the same text on every platform.

So one hash in `.terraform.lock.hcl` fits all platforms, and the lock file can be shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import hybrid
from hybrid.core.errors import ConfigError

PROGRAM = "terraform-provider-hybrid"
SOURCE = "hybrid-burst/hybrid"
PLATFORMS = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
USUAL = "~/.terraform.d/plugins"
"""Terraform looks there without any setting."""

_SHIM = """#!/bin/sh
# Starts the provider that came with hybrid; the same on every platform, so that one hash fits all.
program=${HYBRID_TERRAFORM_PROVIDER:-terraform-provider-hybrid}
command -v "$program" >/dev/null 2>&1 || {
  echo "hybrid: $program is not on PATH. Install it (pip install 'hybrid-burst[terraform]')," >&2
  echo "hybrid: activate its environment, or set HYBRID_TERRAFORM_PROVIDER to its path." >&2
  exit 127
}
exec "$program" "$@"
"""


def install(folder: Path) -> Sequence[Path]:
    """Write the shim for every platform below a folder of plugins; return what was written.

    Args:
        folder: `~/.terraform.d/plugins`, or `terraform.d/plugins` in a root module.

    Raises:
        ConfigError: It cannot be written.
    """
    version = hybrid.__version__
    place = folder / "registry.terraform.io" / SOURCE / version
    written = []
    try:
        for platform in PLATFORMS:
            shim = place / platform / f"{PROGRAM}_v{version}"
            shim.parent.mkdir(parents=True, exist_ok=True)
            shim.write_text(_SHIM)
            shim.chmod(0o755)
            written.append(shim)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror}); name another folder with --dir"
        ) from error
    return written
