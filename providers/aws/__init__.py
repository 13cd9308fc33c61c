"""AWS: instances of EC2, spot and on-demand, through boto3.

One zone is one RunInstances call; a whole region is an instant fleet of one, from a launch
template that all launches of a kind share. The dead-man switch
is a tag that the instance reads from its metadata, and that it turns itself off without.
"""

from __future__ import annotations

from providers.aws.provider import AwsProvider, make

__all__ = ["AwsProvider", "make"]
