"""The composition root: settings in, a running controller out. Only it picks adapters.

`python -m hybrid.app run --config FILE --state-dir DIR [--closing] [--pretty]`
"""

from __future__ import annotations
