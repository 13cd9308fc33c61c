"""Data of jobs: what shipping it costs, and copies of it on the nodes.

Runs inside jobs too: the standard library only, and fsspec where a URL needs it.
"""
