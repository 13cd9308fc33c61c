"""The Python API: find the running cluster, submit work, ask and steer.

    client = hybrid.Client()
    job = client.submit("python train.py", working_dir=".", gpus=1)
    job.wait()

Importing it is cheap; HTTP and models are loaded on first use.
"""

from __future__ import annotations

from hybrid.client.aio import AsyncClient, AsyncJob
from hybrid.client.client import Checkpoint, Client, DataEntry
from hybrid.client.errors import (
    ApiError,
    NoClusterError,
    RefusedError,
    TokenError,
    UnknownError,
    UnreachableError,
    WaitTimeoutError,
)
from hybrid.client.job import Job

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncJob",
    "Checkpoint",
    "Client",
    "DataEntry",
    "Job",
    "NoClusterError",
    "RefusedError",
    "TokenError",
    "UnknownError",
    "UnreachableError",
    "WaitTimeoutError",
]
