"""Serves a stub to Terraform: `python -m tests.terraform.stub NAME`."""

from __future__ import annotations

import sys

from hybrid.terraform.plugin import serve
from tests.terraform.stub.provider import StubProvider


def made(name: str) -> StubProvider:
    """Return the stub of a provider."""
    if name == "aws":
        from tests.terraform.stub.aws.provider import AwsStub

        return AwsStub()
    return StubProvider(name)


if __name__ == "__main__":
    serve(made(sys.argv[1]))
