"""What to do to a cluster so that it matches: a pure function from manifests and what is known to a list of tasks.

The order is wave, tier of kinds, name; waits stand between the waves and after CRDs; prunes come last, in reverse. A
plan is data: dry-run, command line and execution share it.
"""

from collections.abc import Sequence
from itertools import groupby

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.order import CRD, tier
from starling.engine.ownership import how_to_move, may_take
from starling.engine.prepare import Desired, Prepared
from starling.engine.removals import desired_keys, removals
from starling.engine.tasks import DOUBTED, END_OF_WAVE, MISSING, NEW, Action, Plan, Snapshot, Task
from starling.engine.unit import Operation, Phase, Problem, Unit
from starling.objects import digest

__all__ = ["plan"]


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
    going, contradictions = removals(prepared, snapshot, unit)
    problems += contradictions
    plan_digest = digest([prepared.digest, sorted(_meant(task) for task in going if task.action is Action.PRUNE)])
    gated = not _done(snapshot.operation, prepared.digest)
    repairs = tuple(task for task in work if not (gated and task.renews))
    renewals = [task for task in work if gated and task.renews]
    waves = _with_waits(prepared.desired, renewals, snapshot.operation, prepared.digest) if gated else ()
    return Plan(
        tasks=(*repairs, *waves, *pending, *going)
        if last is None
        else (*repairs, *(task for task in waves if task.wave < last or (task.wave == last and not task.ends_wave))),
        gated=gated,
        problems=tuple(problems),
        unchanged=unchanged,
        refusal=_guard(prepared, going, snapshot, unit, plan_digest),
        digest=plan_digest,
    )


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


def _guard(
    prepared: Prepared, going: Sequence[Task], snapshot: Snapshot, unit: Unit, plan_digest: str
) -> Problem | None:
    """Refuse to delete all that a unit had: a wrong path or an empty render looks just like that.

    What isn't there counts as had: it may be gone only to be made anew, or what an operation that passed here was about
    to make when it was cut short. What another unit took over says nothing of this one's path.
    """
    pruned = [task for task in going if task.action is Action.PRUNE]
    if not pruned or not desired_keys(prepared).isdisjoint(snapshot.owned):
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
