"""Removing what was rolled out, when its objects are to stay and a cluster that is away may not know that yet.

Such a cluster keeps its entry: it would delete everything when it is back, and hears that the entry has gone. The entry
is nobody's then; `starling status cluster` names it, and `starling cluster release` lets go of it.
"""

from datetime import datetime
from typing import Final

from starling.api import Resource

__all__ = ["AWAY_AFTER", "long_deleted"]

AWAY_AFTER: Final = 10.0
"""Seconds in which those that are away and do know have lost their entries."""


def long_deleted(obj: Resource, now: datetime) -> bool:
    """Whether it has been deleted for so long that who is away isn't waited for any more."""
    since = obj.metadata.deletion_timestamp
    return since is not None and (now - since).total_seconds() >= AWAY_AFTER
