"""Durations as the API writes them, in seconds."""

import re
from typing import Final

from starling.errors import InputError

__all__ = ["seconds"]

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """How long 30s, 5m or 1h30m is."""
    parts = _PART.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise InputError(f"{duration!r} is no duration", hint="write it as 30s, 5m or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
