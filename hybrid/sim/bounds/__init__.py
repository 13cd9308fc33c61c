"""What even somebody who knows the future must pay: bounds that a policy is measured against.

Needs the extra `sim`; nothing outside this package and the plots imports NumPy or SciPy.
"""

from __future__ import annotations

from hybrid.core.errors import ConfigError

try:
    import numpy as np  # noqa: F401 (only to say in one place that it is missing)
    import scipy as sp  # noqa: F401
except ImportError as missing:  # pragma: no cover - every development environment has both
    raise ConfigError(
        f"bounds need NumPy and SciPy, and {missing.name} is not installed here; "
        "run `pip install 'hybrid-burst[sim]'`"
    ) from missing
