"""What to do to a cluster so that it matches: a pure function from manifests and what is known to a list of tasks.

The order is wave, tier of kinds, name; waits stand between the waves and after CRDs; prunes come last, in reverse. A
plan is data: dry-run, command line and execution share it.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.order import CRD, NAMESPACE, Tier, tier
from starling.engine.ownership import how_to_move, may_take
from starling.engine.prepare import Desired, Prepared
from starling.engine.unit import Operation, Phase, Problem, Unit
from starling.objects import ObjectKey, digest

__all__ = ["DOUBTED", "MISSING", "NEW", "Action", "Plan", "Snapshot", "Task", "dropped", "met", "plan", "plan_removal"]

END_OF_WAVE = len(Tier)
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
    still renders the object; `wanted` what other units of its namespace render; `resting` what isn't repaired for now;
    `unseen` the groups and kinds of which it isn't known what is there; `definitions` the names that CRDs of groups
    and kinds have.
    """

    owned: Mapping[ObjectKey, Record]
    others: Mapping[ObjectKey, tuple[str, bool]] = field(default_factory=dict)
    wanted: frozenset[ObjectKey] = frozenset()
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


def plan(prepared: Prepared, snapshot: Snapshot, unit: Unit) -> Plan:
    """What to do so that the cluster has what is desired of the unit, and nothing else of it.

    A wave with a problem in it is done as far as it goes; later waves and removals have to wait until it is mended.
    What needs no more than a repair comes first: no wave holds it up.
    """
    problems = list(prepared.problems)
    last = prepared.blocked
    work: list[Task] = []
    pending: list[Task] = []
    for desired in prepared.desired:
        match _consider(desired, snapshot, unit):
            case Problem() as problem:
                problems.append(problem)
                last = desired.wave if last is None else min(last, desired.wave)
            case Task(action=Action.WAIT) as task:
                pending.append(task)
            case Task() as task:
                work.append(task)
    unchanged = len(prepared.desired) - len(work) - len(problems) + len(prepared.problems)
    removals = _removals(prepared, snapshot, unit)
    needed = _holders(_desired(prepared), removals, snapshot.definitions)
    problems += [_still_needed(task.key, needed[task.key]) for task in removals if task.key in needed]
    removals = _sparing([task for task in removals if task.key not in needed], snapshot.definitions)
    plan_digest = digest([prepared.digest, sorted(_meant(task) for task in removals if task.action is Action.PRUNE)])
    gated = not _done(snapshot.operation, prepared.digest)
    repairs = tuple(task for task in work if not (gated and task.renews))
    renewals = [task for task in work if gated and task.renews]
    waves = _with_waits(prepared.desired, renewals, snapshot.operation, prepared.digest) if gated else ()
    return Plan(
        tasks=(*repairs, *waves, *pending, *_reversed(removals))
        if last is None
        else (*repairs, *(task for task in waves if task.wave < last or (task.wave == last and not task.ends_wave))),
        gated=gated,
        problems=tuple(problems),
        unchanged=unchanged,
        refusal=_guard(prepared, removals, snapshot, unit, plan_digest),
        digest=plan_digest,
    )


def plan_removal(snapshot: Snapshot, unit: Unit) -> Plan:
    """What to do when the unit itself goes: take everything along, or leave it without our marks.

    What other units of its namespace render is left to them.
    """
    wanted = snapshot.wanted
    orphan = unit.deletion_policy == "Orphan"
    reason = "the unit is removed and leaves its objects" if orphan else "the unit is removed"
    live = [record for record in snapshot.owned.values() if record.live]
    left = [_release(record, "another unit renders it now") for record in live if record.key in wanted]
    taken = [_removal(record, reason, orphan=orphan) for record in live if record.key not in wanted]
    return Plan(tasks=_reversed(_sparing([*left, *taken], snapshot.definitions)))


def dropped(prepared: Prepared, snapshot: Snapshot) -> frozenset[ObjectKey]:
    """What the unit has and no longer wants, as far as it is there."""
    live = {key for key, record in snapshot.owned.items() if record.live}
    return frozenset(live - _desired(prepared))


def met(wait: Task, records: Mapping[ObjectKey, Record]) -> bool:
    """Whether what is waited for has come: objects that are Current, or one that is to go and has gone."""
    found = [records.get(key) for key in wait.awaited]
    if wait.key is not None:
        return all(record is None or not record.live for record in found)
    return all(record is not None and record.readiness is Readiness.CURRENT for record in found)


def _consider(desired: Desired, snapshot: Snapshot, unit: Unit) -> Task | Problem | None:
    """What one object needs."""
    record = snapshot.owned.get(desired.key)
    if record is None and (other := snapshot.others.get(desired.key)) is not None:
        if refusal := may_take(unit.id, *other):
            hint = how_to_move(unit.id, other[0])
            return Problem("OwnedByAnother", f"{desired.key}: {refusal}", desired.key, hint)
        return _task(desired, None, f"moves here from {other[0]}")
    if record is not None and record.readiness is Readiness.TERMINATING:
        return Task(
            Action.WAIT, "is being deleted, and will be made anew", desired.wave, desired.tier,
            awaited=(desired.key,), record=record, desired=desired, key=desired.key,
        )  # fmt: skip
    if reason := _why(desired, record, snapshot):
        return _task(desired, record, reason)
    return None


def _why(desired: Desired, record: Record | None, snapshot: Snapshot) -> str:
    """The reason to apply an object; empty if there is none."""
    if record is None or record.manifest != desired.digest:
        known = record is not None and (record.manifest or record.live)
        return "changed in the manifests" if known else NEW
    if desired.create_only:
        return ""  # made once: that it is gone, a finished Job's usual end, is no reason to make it again
    reasons = {
        MISSING: not record.live,
        "due to be applied again": snapshot.everything,
        DOUBTED: not record.expected,
        "drifted": record.drifted and desired.key not in snapshot.resting,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _task(desired: Desired, record: Record | None, reason: str) -> Task:
    action = Action.CREATE if desired.create_only else Action.APPLY
    return Task(action, reason, desired.wave, desired.tier, desired.key, desired, record)


def _removals(prepared: Prepared, snapshot: Snapshot, unit: Unit) -> list[Task]:
    """What becomes of objects that are no longer desired; what a manifest with a problem may mean is still desired."""
    desired = _desired(prepared)
    found = []
    for key, record in snapshot.owned.items():
        if key in desired or (not record.live and (key.group, key.kind) in snapshot.unseen):
            continue
        if not record.live:
            found.append(_release(record, "is gone already"))
        elif key in snapshot.wanted:
            found.append(_release(record, "another unit renders it now"))
        elif record.readiness is Readiness.TERMINATING:
            found.append(_release(record, "is being deleted already"))
        elif not unit.prune:
            found.append(_release(record, "no longer in the manifests, and pruning is off"))
        else:
            found.append(_removal(record, "no longer in the manifests", orphan=False))
    return found


def _desired(prepared: Prepared) -> frozenset[ObjectKey]:
    """What is wanted, or may be meant by a manifest with a problem."""
    return prepared.withheld.union(each.key for each in prepared.desired)


def _holders(
    keys: Iterable[ObjectKey], removals: Iterable[Task], definitions: Mapping[tuple[str, str], str]
) -> dict[ObjectKey | None, ObjectKey]:
    """The namespaces and CRDs among what is to be pruned that would take one of these objects along, with the first."""
    pruned = {task.key for task in removals if task.action is Action.PRUNE and task.tier <= Tier.DEFINITION}
    if not pruned:
        return {}
    held = ((holder, key) for key in sorted(keys, reverse=True) for holder in _holding(key, definitions))
    return {holder: key for holder, key in held if holder in pruned}


def _holding(key: ObjectKey, definitions: Mapping[tuple[str, str], str]) -> Iterator[ObjectKey]:
    """What an object goes along with."""
    if key.namespace:
        yield ObjectKey(*NAMESPACE, "", key.namespace)
    if name := definitions.get((key.group, key.kind)):
        yield ObjectKey(*CRD, "", name)


def _still_needed(holder: ObjectKey | None, example: ObjectKey) -> Problem:
    definition = holder is not None and (holder.group, holder.kind) == CRD
    place, all_of_it = ("of its kind", "every object of that kind") if definition else ("in it", "everything in it")
    return Problem(
        "StillNeeded",
        f"{holder} is no longer in the manifests, but {example}, which is {place}, is",
        holder,
        f"pruning it would delete {all_of_it}: put it back, or take those out too; "
        "or have it left, by the annotation kustomize.toolkit.fluxcd.io/prune: disabled on it",
    )


def _sparing(removals: Sequence[Task], definitions: Mapping[tuple[str, str], str]) -> list[Task]:
    """The removals, such that nothing takes along what stays: its namespace and its CRD stay too, without our marks."""
    needed = _holders((task.key for task in removals if task.key is not None and _stays(task)), removals, definitions)
    return [
        replace(task, action=Action.ORPHAN, reason=f"{task.reason}, but {needed[task.key]} stays, and would go along")
        if task.key in needed
        else task
        for task in removals
    ]


def _stays(task: Task) -> bool:
    """Whether someone wants an object to be there when its unit has let go of it; who controls one needn't."""
    record = task.record
    if record is None or not record.live or record.readiness is Readiness.TERMINATING:
        return False
    return task.action is Action.RELEASE or (task.action is Action.ORPHAN and record.kept)


def _release(record: Record, reason: str) -> Task:
    place = tier(record.key.group, record.key.kind)
    return Task(Action.RELEASE, reason, record.wave, place, record.key, record=record)


def _removal(record: Record, reason: str, *, orphan: bool) -> Task:
    """Prune an object, or leave it without our marks if it is to be kept; one already going is waited for."""
    key, place = record.key, tier(record.key.group, record.key.kind)
    if not record.marked:
        return _release(record, f"{reason}, and someone took our marks off: it isn't ours to take")
    if record.readiness is Readiness.TERMINATING and not orphan:
        return Task(Action.WAIT, "is being deleted", record.wave, place, key, record=record, awaited=(key,))
    if record.kept and not orphan:
        return Task(Action.ORPHAN, f"{reason}, but marked to be kept", record.wave, place, key, record=record)
    if record.controlled and not orphan:
        return Task(Action.ORPHAN, f"{reason}, but a controller owns it", record.wave, place, key, record=record)
    action = Action.ORPHAN if orphan else Action.PRUNE
    return Task(action, reason, record.wave, place, key, record=record)


def _reversed(removals: Iterable[Task]) -> tuple[Task, ...]:
    """In reverse order of applying; what only has to be waited for comes last, to hold up nothing.

    Namespaces and CRDs that are left come first: whoever goes on after a crash may not know any more what is in them.
    """
    order = sorted(removals, key=lambda task: (task.wave, task.tier, task.key), reverse=True)
    return tuple(sorted(order, key=lambda task: (not _is_left_holder(task), task.action is Action.WAIT)))


def _is_left_holder(task: Task) -> bool:
    return task.action is Action.ORPHAN and task.tier <= Tier.DEFINITION


def _guard(
    prepared: Prepared, removals: Sequence[Task], snapshot: Snapshot, unit: Unit, plan_digest: str
) -> Problem | None:
    """Refuse to delete all that a unit had: a wrong path or an empty render looks just like that.

    What isn't there counts as had: it may be gone only to be made anew, or what an operation that passed here was about
    to make when it was cut short. What another unit took over says nothing of this one's path.
    """
    pruned = [task for task in removals if task.action is Action.PRUNE]
    if not pruned or not _desired(prepared).isdisjoint(snapshot.owned):
        return None
    if unit.allow_empty or unit.confirm == plan_digest:
        return None
    return Problem(
        "WouldDeleteEverything",
        f"this would delete everything {unit.id} has: {len(pruned)} objects, "
        f"{min(str(task.key) for task in pruned)} among them",
        hint=f"is the path right? If it is meant: allowEmpty, or the annotation starling.dev/confirm: {plan_digest}",
    )


def _meant(task: Task) -> str:
    """The very object that is to be pruned: one made anew since is another, and wants to be confirmed again."""
    return f"{task.key} {task.record.uid if task.record is not None else ''}"


def _done(operation: Operation | None, wanted: str) -> bool:
    return operation is not None and operation.digest == wanted and operation.phase is Phase.SUCCEEDED


def _with_waits(
    desired: Sequence[Desired], work: Sequence[Task], operation: Operation | None, wanted: str
) -> tuple[Task, ...]:
    """The work with a wait after each wave but the last, and after CRDs; waves done aren't waited for again."""
    passed = operation.wave if operation is not None and operation.digest == wanted else None
    by_wave: dict[int, list[Task]] = {}
    for task in work:
        by_wave.setdefault(task.wave, []).append(task)
    tasks: list[Task] = []
    waves = [(number, tuple(each)) for number, each in groupby(desired, key=lambda each: each.wave)]
    for index, (number, members) in enumerate(waves):
        todo = by_wave.get(number, [])
        tasks += _after_crds(number, members, todo)
        if index + 1 < len(waves) and (passed is None or number > passed):
            keys = tuple(each.key for each in members)
            tasks.append(Task(Action.WAIT, f"wave {number} must be Current", number, END_OF_WAVE, awaited=keys))
    return tuple(tasks)


def _after_crds(wave: int, members: Sequence[Desired], todo: Sequence[Task]) -> list[Task]:
    """A wave's work, with a wait for its CRDs before whatever comes after them."""
    crds = tuple(each.key for each in members if (each.key.group, each.key.kind) == CRD)
    crd_tier = tier(*CRD)
    before = [task for task in todo if task.tier <= crd_tier]
    after = [task for task in todo if task.tier > crd_tier]
    wait = [Task(Action.WAIT, "CRDs must be established", wave, crd_tier, awaited=crds)] if crds and after else []
    return [*before, *wait, *after]
