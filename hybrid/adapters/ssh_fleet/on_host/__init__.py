"""Programs that are sent to a host over standard input.

Standard library only, and nothing of hybrid but the node program that they bring along. Each has
a `main(**arguments)` whose answer is JSON, and may call `say("note", content)` before.
"""

from __future__ import annotations
