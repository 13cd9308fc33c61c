"""The node program as one small archive, for a host that has nothing but Python and Ray."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from hybrid import node


@lru_cache(maxsize=1)
def parcel() -> Mapping[str, str]:
    """Return its `name`, a hash of what is in it, and its `content`."""
    folder = Path(next(iter(node.__path__)))
    sources = {f"hybrid/node/{path.name}": path.read_bytes() for path in folder.glob("*.py")}
    # Not our own: that one leads to all the rest.
    return pack({**sources, "hybrid/__init__.py": b""})


def pack(sources: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return a parcel of files, by their paths. The host checks the hash, see `on_host.node`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as tar:
        for name, content in sorted(sources.items()):
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o644
            tar.addfile(about, io.BytesIO(content))
    mark = hashlib.sha256()
    for name, content in sorted(sources.items()):
        mark.update(f"{name}\0{len(content)}\0".encode())
        mark.update(content)
    return {
        "name": mark.hexdigest()[:16],
        "content": base64.b64encode(packed.getvalue()).decode(),
    }
