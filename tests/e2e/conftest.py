"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.deployment import Deployment


@contextmanager
def deployed(kind: type[Deployment] = Deployment, **changes: Any) -> Iterator[Deployment]:
    """Give a cluster that is not started, and see that nothing of it outlives the test."""
    deployment = kind(**changes)
    try:
        yield deployment
        deployment.down()
        deployment.assert_nothing_left()
    finally:
        deployment.close()


@pytest.fixture(scope="module")
def module_cluster(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    """A running cluster for a module, which may say `CONFIG` for changes to its configuration."""
    with deployed(**getattr(request.module, "CONFIG", {})) as deployment:
        deployment.up()
        yield deployment


@pytest.fixture
def cluster(module_cluster: Deployment) -> Deployment:
    """The module's cluster, running and at rest, whatever the test before did."""
    module_cluster.settle()
    return module_cluster
