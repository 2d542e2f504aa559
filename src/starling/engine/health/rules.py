"""The sets of rules there are."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from starling.engine.health.kstatus import assess
from starling.engine.health.readiness import Health

__all__ = ["RULES", "Rules"]

Rules = Callable[[Mapping[str, Any], datetime], Health]
"""What gives an object's health at a time."""

RULES: Final[Mapping[str, Rules]] = {"kstatus": assess}
"""By name; the first is the default."""
