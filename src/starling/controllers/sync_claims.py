"""Which Sync has which unit: several may claim one, and one of them has it for as long as it does."""

from collections.abc import Callable
from typing import Any

from starling.errors import InputError
from starling.runtime import Key

__all__ = ["Claims"]


class Claims:
    """Syncs by the unit that they claim to be, or why that is none. Mutable.

    Who has a unit keeps it; when it is free, the oldest of its claimants gets it.
    """

    def __init__(self) -> None:
        self._claimed: dict[Key, str | InputError] = {}
        self._claimants: dict[str, set[Key]] = {}
        self._holders: dict[str, Key] = {}

    def units(self) -> list[str]:
        """All units that someone claims."""
        return list(self._claimants)

    def claimed(self, key: Key) -> str | InputError:
        """What a Sync claims."""
        return self._claimed[key]

    def claimants(self, unit_id: str) -> frozenset[Key]:
        """Who claims a unit."""
        return frozenset(self._claimants.get(unit_id, ()))

    def holder(self, unit_id: str, age: Callable[[Key], Any]) -> Key | None:
        """Who has it; `age` orders its claimants if nobody had it yet."""
        if unit_id not in self._holders:
            if not (claimants := self._claimants.get(unit_id)):
                return None
            self._holders[unit_id] = min(claimants, key=age)
        return self._holders[unit_id]

    def put(self, key: Key, claimed: str | InputError) -> list[str]:
        """Note what a Sync claims; the units for which this changes something."""
        before = self._claimed.get(key)
        if isinstance(claimed, str) and before == claimed:
            return []
        affected = self.drop(key)
        self._claimed[key] = claimed
        if isinstance(claimed, str):
            self._claimants.setdefault(claimed, set()).add(key)
            affected.append(claimed)
        return affected

    def drop(self, key: Key) -> list[str]:
        """Note that a Sync is gone; the units for which this changes something."""
        before = self._claimed.pop(key, None)
        if not isinstance(before, str):
            return []
        self._claimants[before].discard(key)
        if not self._claimants[before]:
            del self._claimants[before]
        if self._holders.get(before) == key:
            del self._holders[before]
        return [before]
