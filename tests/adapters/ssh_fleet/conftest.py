"""A server on loopback, machines in namespaces, and what connects to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ssh_fleet import Ssh
from tests.sshd.need import need_namespaces, need_sshd
from tests.sshd.network import Network
from tests.sshd.server import Keys, Server


@pytest.fixture
def short() -> Iterator[Path]:
    """Yield a folder with a short path, for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def keys(short: Path) -> Keys:
    need_sshd()
    return Keys(short / "keys")


@pytest.fixture
def server(keys: Keys) -> Iterator[Server]:
    """Yield a running server that is known."""
    made = Server(keys)
    made.start()
    made.know()
    yield made
    made.close()


@pytest.fixture
def ssh(short: Path, keys: Keys) -> Iterator[Ssh]:
    made = Ssh(short / "s", keys.settings(), SystemClock())
    yield made
    made.close()
    assert not (short / "s").exists()  # no connection is left


@pytest.fixture
def network(keys: Keys) -> Iterator[Network]:
    need_namespaces()
    made = Network(keys)
    yield made
    made.close()
