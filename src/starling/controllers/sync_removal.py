"""Syncs that are being deleted while the cluster they go to is away: how long that is waited for, and what is left."""

from datetime import datetime, timedelta
from typing import Final

from starling.aio import Clock
from starling.api import Cluster, Sync
from starling.controllers.sync_units import cluster_of
from starling.engine import unpack
from starling.errors import InputError

__all__ = ["Absences", "abandoned", "left_there"]

MOST_NAMED: Final = 10


class Absences:
    """Units that are out of sight. Mutable: since when each is, by what this process has seen.

    So that a process which was away itself doesn't take all for dead.
    """

    def __init__(self, give_up_after: float, clock: Clock) -> None:
        self._longest = timedelta(seconds=give_up_after)
        self._clock = clock
        self._since: dict[str, datetime] = {}

    def saw(self, unit_id: str, *, out_of_sight: bool) -> None:
        """Note whether a unit can be seen now."""
        if out_of_sight:
            self._since.setdefault(unit_id, self._clock.now())
        else:
            self.forget(unit_id)

    def until(self, unit_id: str, sync: Sync) -> datetime | None:
        """When the wait for its cluster ends; None if there is none: the unit can be seen, or nobody deletes it."""
        since, deleted = self._since.get(unit_id), sync.metadata.deletion_timestamp
        return max(since, deleted) + self._longest if since is not None and deleted is not None else None

    def forget(self, unit_id: str) -> None:
        """Keep nothing of a unit."""
        self._since.pop(unit_id, None)


def abandoned(sync: Sync, cluster: Cluster | None, until: datetime | None, now: datetime) -> str:
    """Why a Sync that is being deleted goes without its objects on another cluster; nothing if it waits for that.

    Who removes a Cluster lets go of all that is there.
    """
    key = cluster_of(sync)
    if key is None or sync.metadata.deletion_timestamp is None:
        return ""
    if cluster is None:
        return f"Cluster {key} is gone"
    if cluster.metadata.deletion_timestamp is not None:
        return f"Cluster {key} is being deleted"
    return f"Cluster {key} can't be reached" if until is not None and now >= until else ""


def left_there(sync: Sync) -> str:
    """What may be left on the cluster, the first few by name."""
    try:
        keys = sorted(unpack(sync.status.inventory))
    except InputError:
        return f"{len(sync.status.inventory)} objects"
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return ", ".join(map(str, keys[:MOST_NAMED])) + more
