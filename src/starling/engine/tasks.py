"""What plans are made of: tasks with reasons, and what is known when planning begins."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.order import Tier
from starling.engine.prepare import Desired
from starling.engine.unit import Operation, Problem
from starling.objects import ObjectKey

__all__ = ["DOUBTED", "END_OF_WAVE", "MISSING", "NEW", "Action", "Plan", "Snapshot", "Task", "met"]

END_OF_WAVE: Final = len(Tier)
NEW: Final = "new"
MISSING: Final = "missing"
DOUBTED: Final = "compared by applying it: not all of the unit is known to be as it was left"


class Action(enum.StrEnum):
    """What a task does."""

    APPLY = "apply"
    CREATE = "create"
    PRUNE = "prune"
    ORPHAN = "orphan"
    RELEASE = "release"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Task:
    """One step and why.

    A wait is for all of `awaited` to be Current; or, if it has a `key`, for that object to be gone. A release does
    nothing to the object, which is no longer the unit's.
    """

    action: Action
    reason: str
    wave: int
    tier: int = 0
    key: ObjectKey | None = None
    desired: Desired | None = None
    record: Record | None = None
    awaited: tuple[ObjectKey, ...] = ()

    @property
    def renews(self) -> bool:
        """Whether this brings a manifest that wasn't applied before, rather than repairing."""
        return self.desired is not None and (self.record is None or self.record.manifest != self.desired.digest)

    @property
    def first_contact(self) -> bool:
        """Whether the object, if it is there, isn't known to be of our making: others' fields are then taken over.

        Where nothing is ours any more (managed fields cleared), the API server gives all to `before-first-apply`.
        """
        record = self.record
        return record is None or not record.manifest or (record.live and not record.entry)

    @property
    def ends_wave(self) -> bool:
        """Whether this is the wait for a whole wave."""
        return self.tier == END_OF_WAVE

    def __str__(self) -> str:
        what = str(self.key) if self.key is not None else f"wave {self.wave}"
        return f"{self.action} {what}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of a unit on its cluster, when planning begins.

    `owned` are the unit's records; `others` the owners of desired objects that aren't its own, with whether that owner
    still renders the object; `wanted` what other units of its namespace render, `occupied` the namespaces and CRDs that
    have objects of theirs in them; `resting` what isn't repaired for now; `unseen` the groups and kinds of which it
    isn't known what is there; `definitions` the names that CRDs of groups and kinds have.
    """

    owned: Mapping[ObjectKey, Record]
    others: Mapping[ObjectKey, tuple[str, bool]] = field(default_factory=dict)
    wanted: frozenset[ObjectKey] = frozenset()
    occupied: frozenset[ObjectKey] = frozenset()
    resting: frozenset[ObjectKey] = frozenset()
    unseen: frozenset[tuple[str, str]] = frozenset()
    definitions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    operation: Operation | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks in the order of their doing; `refusal` says why none of them may be done. `gated`: waves wait for waves."""

    tasks: tuple[Task, ...] = ()
    gated: bool = False
    problems: tuple[Problem, ...] = ()
    unchanged: int = 0
    refusal: Problem | None = None
    digest: str = ""

    @property
    def work(self) -> tuple[Task, ...]:
        """The tasks that do something; a plan without any is one of a unit that is as it should be."""
        return tuple(task for task in self.tasks if task.action is not Action.WAIT)


def met(wait: Task, records: Mapping[ObjectKey, Record]) -> bool:
    """Whether what is waited for has come: objects that are Current, or one that is to go and has gone."""
    found = [records.get(key) for key in wait.awaited]
    if wait.key is not None:
        return all(record is None or not record.live for record in found)
    return all(record is not None and record.readiness is Readiness.CURRENT for record in found)
