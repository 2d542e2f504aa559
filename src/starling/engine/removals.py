"""What becomes of objects that a unit no longer wants, or leaves behind when it goes: pruned, or left, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.order import CRD, NAMESPACE, Tier, tier
from starling.engine.prepare import Prepared
from starling.engine.tasks import Action, Plan, Snapshot, Task
from starling.engine.unit import Problem, Unit
from starling.objects import ObjectKey

__all__ = ["desired_keys", "dropped", "holders", "plan_removal", "removals"]

NO_LONGER: Final = "no longer in the manifests"
OCCUPIED: Final = "other units have objects in it, or of its kind"


def plan_removal(snapshot: Snapshot, unit: Unit) -> Plan:
    """What to do when the unit itself goes: take everything along, or leave it without our marks.

    What other units of its namespace render is left to them.
    """
    orphan = unit.deletion_policy == "Orphan"
    reason = "the unit is removed and leaves its objects" if orphan else "the unit is removed"
    live = [record for record in snapshot.owned.values() if record.live]
    left = [_release(record, "another unit renders it now") for record in live if record.key in snapshot.wanted]
    taken = [
        _removal(record, f"{reason}, but {OCCUPIED}", orphan=True)
        if record.key in snapshot.occupied and not orphan
        else _removal(record, reason, orphan=orphan)
        for record in live
        if record.key not in snapshot.wanted
    ]
    return Plan(tasks=_in_reverse(_sparing([*left, *taken], snapshot.definitions)))


def dropped(prepared: Prepared, snapshot: Snapshot) -> frozenset[ObjectKey]:
    """What the unit has and no longer wants, as far as it is there to stay."""
    there = (record for record in snapshot.owned.values() if record.live)
    staying = {record.key for record in there if record.readiness is not Readiness.TERMINATING}
    return frozenset(staying - desired_keys(prepared))


def removals(prepared: Prepared, snapshot: Snapshot, unit: Unit) -> tuple[tuple[Task, ...], list[Problem]]:
    """What becomes of objects that are no longer desired, in order; and what can't go, since the manifests need it.

    What a manifest with a problem may mean is still desired.
    """
    desired = desired_keys(prepared)
    gone = (record for key, record in snapshot.owned.items() if key not in desired)
    found = [_becomes(record, snapshot, unit) for record in gone if record.live or not _is_unseen(record, snapshot)]
    needed = _held(desired, found, snapshot.definitions)
    problems = [_still_needed(task.key, needed[task.key]) for task in found if task.key in needed]
    going = _sparing([task for task in found if task.key not in needed], snapshot.definitions)
    return _in_reverse(_unless_occupied(task, snapshot) for task in going), problems


def _is_unseen(record: Record, snapshot: Snapshot) -> bool:
    return (record.key.group, record.key.kind) in snapshot.unseen


def _becomes(record: Record, snapshot: Snapshot, unit: Unit) -> Task:
    """What becomes of one of them, as far as it alone is concerned."""
    reasons = {
        "is gone already": not record.live,
        "another unit renders it now": record.key in snapshot.wanted,
        "is being deleted already": record.readiness is Readiness.TERMINATING,
        f"{NO_LONGER}, and pruning is off": not unit.prune,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), ""):
        return _release(record, reason)
    return _removal(record, NO_LONGER, orphan=False)


def _unless_occupied(task: Task, snapshot: Snapshot) -> Task:
    """The task; or to leave the object for now, to be looked at again with every plan."""
    if task.action is not Action.PRUNE or task.key not in snapshot.occupied:
        return task
    return replace(task, action=Action.RELEASE, reason=f"{task.reason}, but {OCCUPIED}")


def desired_keys(prepared: Prepared) -> frozenset[ObjectKey]:
    """What is wanted, or may be meant by a manifest with a problem."""
    return prepared.withheld.union(each.key for each in prepared.desired)


def _held(
    keys: Iterable[ObjectKey], tasks: Iterable[Task], definitions: Mapping[tuple[str, str], str]
) -> dict[ObjectKey | None, ObjectKey]:
    """The namespaces and CRDs among what is to be pruned that would take one of these objects along, with the first."""
    pruned = {task.key for task in tasks if task.action is Action.PRUNE and task.tier <= Tier.DEFINITION}
    if not pruned:
        return {}
    found = ((holder, key) for key in sorted(keys, reverse=True) for holder in holders(key, definitions))
    return {holder: key for holder, key in found if holder in pruned}


def holders(key: ObjectKey, definitions: Mapping[tuple[str, str], str]) -> Iterator[ObjectKey]:
    """What an object goes along with: its namespace, and the CRD of its kind."""
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


def _sparing(tasks: Sequence[Task], definitions: Mapping[tuple[str, str], str]) -> list[Task]:
    """The removals, such that nothing takes along what stays: its namespace and its CRD stay too, without our marks."""
    needed = _held((task.key for task in tasks if task.key is not None and _stays(task)), tasks, definitions)
    return [
        replace(task, action=Action.ORPHAN, reason=f"{task.reason}, but {needed[task.key]} stays, and would go along")
        if task.key in needed
        else task
        for task in tasks
    ]


def _stays(task: Task) -> bool:
    """Whether an object that is let go of for good is to be there still; who controls one needn't want that."""
    record = task.record
    if record is None or not record.live or record.readiness is Readiness.TERMINATING:
        return False
    return (task.action is Action.ORPHAN and record.kept) or (task.action is Action.RELEASE and not record.marked)


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


def _in_reverse(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """In reverse order of applying; what only has to be waited for comes last, to hold up nothing.

    Namespaces and CRDs that are left come first: whoever goes on after a crash may not know any more what is in them.
    """
    order = sorted(tasks, key=lambda task: (task.wave, task.tier, task.key), reverse=True)
    return tuple(sorted(order, key=lambda task: (not _is_left_holder(task), task.action is Action.WAIT)))


def _is_left_holder(task: Task) -> bool:
    return task.action is Action.ORPHAN and task.tier <= Tier.DEFINITION
