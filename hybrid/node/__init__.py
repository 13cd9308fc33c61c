"""The program that runs on a node: starts Ray, watches it, and ends everything it started.

Standard library only, and nothing else of hybrid: it must start fast and run alone. The
command line is in `__main__`; programs of this package that live on the same machine may call
`hybrid.node.stopping` and `hybrid.node.folder` directly.
"""

from __future__ import annotations
