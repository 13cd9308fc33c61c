"""What Terraform needs of hybrid: the provider, its protocol, and reading modules' outputs."""

from __future__ import annotations
