"""Prints a parameter of Parameter Store: `fetch.py NAME`."""

from __future__ import annotations

import sys

import boto3

client = boto3.client("ssm")
answer = client.get_parameter(Name=sys.argv[1], WithDecryption=True)
sys.stdout.write(answer["Parameter"]["Value"])
