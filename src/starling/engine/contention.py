"""Fields that another manager takes again and again: after three times we let go for a while instead of fighting."""

from dataclasses import dataclass, field

import msgspec

from starling.engine.unit import MOST_PROBLEMS, Drift
from starling.objects import ObjectKey

__all__ = ["Contention"]

TIMES = 3
ANONYMOUS_TIMES = 10
"""Removals that nobody signs may be many people's; at so many of one thing it doesn't matter whose."""

LONGEST = 3600.0
FORGOTTEN_AFTER = 10
"""Waits without a new taking, after which it is as if nothing had happened."""

_Taking = tuple[ObjectKey, str, str]


@dataclass
class _Quarrel:
    drift: Drift
    times: int = 0
    last: float = 0.0
    wait: float = 0.0

    @property
    def serious(self) -> bool:
        return self.times >= (TIMES if self.drift.manager else ANONYMOUS_TIMES)

    @property
    def rests_until(self) -> float:
        return self.last + self.wait if self.serious else 0.0


@dataclass
class Contention:
    """One unit's quarrels over fields, by object, field and manager. Mutable; times are of a monotonic clock."""

    first_wait: float
    _quarrels: dict[_Taking, _Quarrel] = field(default_factory=dict)

    def taken(self, drift: Drift, now: float) -> None:
        """Note that a manager took fields of ours, or that a field or the whole object was removed."""
        self.forget(now)
        for name in drift.fields or ("",):
            taking = (drift.key, name, drift.manager)
            quarrel = self._quarrels.get(taking)
            if quarrel is None:
                quarrel = self._quarrels[taking] = _Quarrel(drift)
            quarrel.drift = msgspec.structs.replace(drift, fields=(name,) if name else ())
            quarrel.times += 1
            quarrel.last = now
            if quarrel.serious:
                quarrel.wait = min(LONGEST, quarrel.wait * 2 or self.first_wait)

    def forget(self, now: float) -> None:
        """Drop what has been quiet for long."""
        self._quarrels = {
            taking: each
            for taking, each in self._quarrels.items()
            if now - each.last <= FORGOTTEN_AFTER * (each.wait or self.first_wait)
        }

    def resting(self, now: float) -> frozenset[ObjectKey]:
        """The objects that aren't repaired for now."""
        return frozenset(each.drift.key for each in self._quarrels.values() if each.rests_until > now)

    def wakes(self, now: float) -> float | None:
        """Seconds until the next of them is looked at again."""
        waits = [each.rests_until - now for each in self._quarrels.values() if each.rests_until > now]
        return min(waits, default=None)

    def contended(self, now: float) -> tuple[Drift, ...]:
        """What is being fought over, and with whom; the latest."""
        serious = [each for each in self._quarrels.values() if each.serious]
        return tuple(each.drift for each in serious if now - each.last <= FORGOTTEN_AFTER * each.wait)[-MOST_PROBLEMS:]
