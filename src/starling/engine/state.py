"""What the engine remembers of one unit between two looks at it, and the status that follows from it."""

import math
import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from starling.aio import Backoff
from starling.engine.cache import ClusterCache, Record
from starling.engine.connection import ANY_VERSION, Connection
from starling.engine.contention import Contention
from starling.engine.health import Readiness, least
from starling.engine.inventory import baseline
from starling.engine.tasks import Task, met
from starling.engine.unit import MOST_PROBLEMS, Drift, Operation, Phase, Problem, Unit, UnitStatus
from starling.errors import StarlingError
from starling.kube import KubeError
from starling.objects import GroupVersionKind, ObjectKey

__all__ = ["UnitState", "as_left", "recover", "status_of", "unknown_status"]

REMEMBERED = 20
"""Drift reports that a status carries."""

TERMINATING = Readiness.TERMINATING
NOTHING = UnitStatus()
GRACE = 10.0
"""Seconds that an object which had failed has, once it was renewed, to say something else."""
UNFINISHED = frozenset({Readiness.IN_PROGRESS, Readiness.TERMINATING, Readiness.MISSING})


@dataclass(slots=True)
class UnitState:
    """One unit as this process knows it. Mutable, by whoever has the unit in hand. Times are of a monotonic clock.

    `stored` is what was written down of it, until that has been compared with what is there on `connection`; `written`
    what was written last, its inventory left out but for a hash. `reread`: ask the store for it. `look`: plan even if
    nothing seems to have changed. `busy`: an operation processor has it. `waiting` is the wait at which its operation
    stopped, `retry_at` when what failed is tried again, `due` when everything is applied again. `left` is the drift
    that the last operation found and left as it was: no reason for another. `excused` are objects that had failed when
    they were renewed, or are yet to be, each with the time until which that doesn't count.
    """

    unit: Unit | None = None
    written: UnitStatus = NOTHING
    written_inventory: int = 0
    reread: bool = True
    look: bool = True
    no_cache: bool = False
    stored: UnitStatus = NOTHING
    connection: Connection | None = None
    busy: bool = False
    revision: str = ""
    applied_revision: str = ""
    operation: Operation | None = None
    baseline: str = ""
    problems: tuple[Problem, ...] = ()
    shared: tuple[Drift, ...] = ()
    waiting: Task | None = None
    retry_at: float | None = None
    due: float = math.inf
    in_progress_since: float | None = None
    left: Mapping[ObjectKey, int] = field(default_factory=dict)
    excused: dict[ObjectKey, float] = field(default_factory=dict)
    kinds: frozenset[GroupVersionKind] = frozenset()
    removed: bool = False
    drift: deque[Drift] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    contention: Contention = field(default_factory=lambda: Contention(60.0))
    backoff: Backoff = field(default_factory=Backoff)

    def remember(self, status: UnitStatus) -> None:
        """Begin with what was written down; what is there is compared with it once it has been seen."""
        self.stored, self.connection = status, None
        self.revision, self.applied_revision = status.revision, status.applied_revision
        self.operation = status.operation
        self.shared = status.shared
        self.drift.clear()
        self.drift.extend(status.drift)
        self.look = True

    def wrote(self, status: UnitStatus) -> None:
        """Note what is written down by now."""
        self.written, self.written_inventory = _bare(status), _inventory_hash(status)

    def says_anything_new(self, status: UnitStatus) -> bool:
        """Whether a status differs from what is written down."""
        return _bare(status) != self.written or _inventory_hash(status) != self.written_inventory

    def stored_kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds of all that was written down."""
        return frozenset(GroupVersionKind(key.group, ANY_VERSION, key.kind) for key in self.stored.inventory)

    def all_kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds of all that it has or wants."""
        return self.kinds | self.stored_kinds()

    def observe(self, owned: Mapping[ObjectKey, Record], now: float) -> None:
        """Note since when the unit has been on its way, and which failures count again."""
        for key in [key for key, until in self.excused.items() if now >= until or _is_current(owned.get(key))]:
            del self.excused[key]
        if _on_its_way(self, self.judged(owned, now)) not in UNFINISHED:
            self.in_progress_since = None
        elif self.in_progress_since is None:
            self.in_progress_since = now

    def excuse(self, keys: Iterable[ObjectKey], owned: Mapping[ObjectKey, Record]) -> None:
        """Objects are to be renewed: what has failed of them says nothing of what they are to become."""
        failed = (key for key in keys if key in owned and owned[key].readiness is Readiness.FAILED)
        begun = {key: until for key, until in self.excused.items() if until < math.inf}
        self.excused = begun | dict.fromkeys(failed, math.inf)

    def renewed(self, keys: Collection[ObjectKey | None], now: float) -> None:
        """Objects were renewed; their controllers may take a moment until they say how what is new fares."""
        for key in self.excused:
            if key in keys:
                self.excused[key] = now + GRACE

    def judged(self, owned: Mapping[ObjectKey, Record], now: float) -> Mapping[ObjectKey, Record]:
        """The records, with failures that don't count as what they are: on their way."""
        stale = [key for key, until in self.excused.items() if now < until and key in owned]
        stale = [key for key in stale if owned[key].readiness is Readiness.FAILED]
        return {**owned, **{key: _excused(owned[key]) for key in stale}} if stale else owned

    def wants_operation(self, owned: Mapping[ObjectKey, Record], now: float) -> bool:
        """Whether there may be something to do, as far as can be told without its manifests."""
        if self.look or (self.retry_at is not None and now >= self.retry_at):
            return True
        if self.retry_at is None and now >= self.due:
            return True
        if self.waiting is not None and met(self.waiting, owned):
            return True
        passed_over = {problem.key for problem in self.problems}
        amiss = self.amiss(owned, now)
        return any(key not in passed_over and self.left.get(key) != entry for key, entry in amiss.items())

    def amiss(self, owned: Mapping[ObjectKey, Record], now: float) -> dict[ObjectKey, int]:
        """What has drifted and may be put right, with the digest of our managed fields as they are."""
        resting = self.contention.resting(now)
        return {
            key: record.entry
            for key, record in owned.items()
            if record.drifted and not record.once and key not in resting and record.readiness is not TERMINATING
        }

    def put_off(self, now: float) -> None:
        """Everything has been applied: that is due again in an interval, a little less so that units spread out."""
        assert self.unit is not None
        self.due = now + self.unit.interval * random.uniform(0.9, 1.0)  # noqa: S311 - spreads units, hides nothing

    def overdue(self, now: float) -> bool:
        """Whether the unit has been on its way for longer than it may."""
        return (
            self.unit is not None
            and self.in_progress_since is not None
            and now >= self.in_progress_since + self.unit.timeout
        )

    def next_look(self, now: float) -> float | None:
        """Seconds until time alone gives a reason to look again; None if only an event can."""
        wakes, since = self.contention.wakes(now), self.in_progress_since
        times = [
            self.due,
            self.retry_at if self.retry_at is not None else math.inf,
            now + wakes if wakes is not None else math.inf,
            *self.excused.values(),
            since + self.unit.timeout if since is not None and self.unit is not None else math.inf,
        ]
        waits = [time - now for time in times if now < time < math.inf]
        return min(waits, default=None)


def _bare(status: UnitStatus) -> UnitStatus:
    return msgspec.structs.replace(status, inventory={})


def _inventory_hash(status: UnitStatus) -> int:
    return hash(frozenset(status.inventory.items()))


def recover(unit: Unit, state: UnitState, cache: ClusterCache, now: float) -> None:
    """Compare what the unit had with what is there; if nothing has changed since, nothing need be applied."""
    stored = state.stored
    left = as_left(cache.owned(unit.id), stored)
    cache.expect(unit.id, stored.inventory, as_left=left)
    state.baseline = stored.baseline if left else ""
    state.due = now + unit.interval * random.uniform(0.1, 1.0)  # noqa: S311 - spreads units, hides nothing
    state.stored = NOTHING


def as_left(owned: Mapping[ObjectKey, Record], stored: UnitStatus) -> bool:
    """Whether all that the inventory names is just as the last operation left it."""
    entries = []
    for key, manifest in stored.inventory.items():
        if not manifest:
            continue  # no longer rendered, and left: what becomes of it is nobody's concern
        record = owned.get(key)
        entries.append((key, manifest, record.entry if record is not None else 0))
    return bool(stored.baseline) and baseline(entries) == stored.baseline


def status_of(
    state: UnitState, owned: Mapping[ObjectKey, Record], now: float, error: KubeError | None = None
) -> UnitStatus:
    """How the unit stands: what is known of its objects, and of its operation."""
    unit = state.unit
    assert unit is not None
    owned = state.judged(owned, now)
    readiness, message = _readiness(state, unit, owned, now)
    if error is not None:
        readiness, message = Readiness.UNKNOWN, error.message
    problems = (*state.problems, *_unready(owned))
    return UnitStatus(
        revision=state.revision,
        applied_revision=state.applied_revision,
        readiness=readiness,
        message=unit.held or message,
        objects=dict(Counter(record.readiness for record in owned.values())),
        problems=problems[:MOST_PROBLEMS],
        inventory={key: record.manifest for key, record in owned.items()},
        baseline=state.baseline,
        operation=state.operation,
        drift=tuple(state.drift),
        contended=state.contention.contended(now),
        shared=state.shared,
        removed=state.removed,
    )


def unknown_status(state: UnitState, trouble: StarlingError) -> UnitStatus:
    """A unit of which nothing could be seen yet: what was written down, and that it may be so no longer."""
    return msgspec.structs.replace(state.stored, readiness=Readiness.UNKNOWN, message=trouble.message, objects={})


def _is_current(record: Record | None) -> bool:
    return record is not None and record.readiness is Readiness.CURRENT


def _excused(record: Record) -> Record:
    message = f"had failed before this was applied: {record.message}"
    return msgspec.structs.replace(record, readiness=Readiness.IN_PROGRESS, message=message)


def _counts(record: Record) -> bool:
    """Whether an object says how ready its unit is: one that isn't there does if it was, and was to stay."""
    return record.live or (bool(record.manifest) and not record.once)


def _on_its_way(state: UnitState, owned: Mapping[ObjectKey, Record]) -> Readiness:
    """The least of its objects', and no better than its operation."""
    readiness = least(record.readiness for record in owned.values() if _counts(record))
    if state.operation is None or state.operation.phase is Phase.RUNNING:
        return min(readiness, Readiness.IN_PROGRESS)
    return readiness


def _readiness(state: UnitState, unit: Unit, owned: Mapping[ObjectKey, Record], now: float) -> tuple[Readiness, str]:
    readiness = _on_its_way(state, owned)
    if state.problems:
        return min(readiness, Readiness.FAILED), state.problems[0].message
    awaited = _first_message(owned, readiness) or (str(state.waiting) if state.waiting is not None else "")
    if state.overdue(now):
        return Readiness.FAILED, f"not ready after {unit.timeout:g} s: {awaited}"
    return readiness, awaited


def _first_message(owned: Mapping[ObjectKey, Record], readiness: Readiness) -> str:
    keys = [key for key, record in owned.items() if record.readiness is readiness and _counts(record)]
    if not keys or readiness is Readiness.CURRENT:
        return ""
    first = min(keys)
    more = f" (and {len(keys) - 1} more)" if len(keys) > 1 else ""
    return f"{first} is {readiness}: {owned[first].message or 'not there'}{more}"


def _unready(owned: Mapping[ObjectKey, Record]) -> tuple[Problem, ...]:
    """Objects that have failed, and those that are Current and still complain."""
    return tuple(
        Problem("Failed" if record.readiness is Readiness.FAILED else "Complains", f"{key}: {record.message}", key)
        for key, record in sorted(owned.items())
        if record.readiness is Readiness.FAILED or (record.readiness is Readiness.CURRENT and record.message)
    )
