"""What becomes of objects that are no longer in the manifests: last, in reverse, and never what must stay."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.plan import Action, Plan, Snapshot, plan, plan_removal
from starling.engine.prepare import Desired
from starling.engine.unit import Problem, Unit
from starling.kube import Resource
from tests.unit.engine.planning import (
    CRD,
    OBJECTS,
    OTHER,
    RECORDS,
    UNIT,
    applied,
    desired,
    key,
    missing,
    operation,
    prepared,
    record,
    snapshot,
    told,
)


def with_rest(*records: Record, unit: Unit = UNIT) -> Plan:
    """The plan when of these objects and one more only that one is still wanted."""
    return plan(prepared(desired("stays")), snapshot(record("stays"), *records), unit)


@given(objects=OBJECTS, old=RECORDS)
def test_prunes_come_last_and_in_reverse(objects: list[Desired], old: list[Record]) -> None:
    """By falling wave, tier and name, after everything else; what is still wanted isn't among them."""
    wanted = prepared(*objects)
    known = {each.key: each for each in old} | applied(objects[: len(objects) // 2])
    made = plan(wanted, Snapshot(known), unit_with(allow_empty=True))
    pruned = [task for task in made.tasks if task.action is Action.PRUNE]
    assert {task.key for task in pruned} == {each.key for each in old}
    assert made.tasks[len(made.tasks) - len(pruned) :] == tuple(pruned)
    order = [(task.wave, task.tier, task.key) for task in pruned]
    assert order == sorted(order, reverse=True)


def unit_with(**changes: Any) -> Unit:
    """The unit, with these settings."""
    return Unit(id=UNIT.id, cluster=UNIT.cluster, **changes)


@given(old=RECORDS, problem=st.sampled_from(["unknown kind", "owned by another"]))
def test_nothing_is_pruned_while_there_are_problems(old: list[Record], problem: str) -> None:
    """What is wrong may be the very reason why something seems to be gone."""
    known = {each.key: each for each in old} | {key("stays"): record("stays")}
    wanted = prepared(desired("stays"))
    others = {}
    if problem == "unknown kind":
        wanted = prepared(desired("stays"), problems=[Problem("UnknownKind", "no such kind")], blocked=0)
    else:
        wanted = prepared(desired("stays"), desired("theirs"))
        others = {key("theirs"): (OTHER, True)}
    made = plan(wanted, Snapshot(known, others), UNIT)
    assert made.problems
    assert made.work == ()


def test_what_a_manifest_with_a_problem_may_mean_is_not_pruned() -> None:
    """Even where removals are asked for, an object that is withheld is still wanted."""
    widget = record("w", kind="example.com/v1 Widget")
    wanted = dataclasses.replace(prepared(desired("stays")), withheld=frozenset({widget.key}))
    assert told(plan(wanted, snapshot(record("stays"), widget, record("old")), UNIT)) == ["prune old"]


def test_what_is_marked_or_controlled_is_left() -> None:
    """Without our marks, and with the reason."""
    made = with_rest(record("kept", kept=True), record("owned", controlled=True), record("old"))
    assert told(made) == ["orphan owned", "prune old", "orphan kept"]
    reasons = {task.key.name: task.reason for task in made.tasks if task.key is not None}
    assert reasons["kept"] == "no longer in the manifests, but marked to be kept"
    assert reasons["owned"] == "no longer in the manifests, but a controller owns it"


def test_what_need_not_be_deleted_is_released() -> None:
    """What is gone, what another unit renders, and everything if pruning is off."""
    assert told(with_rest(missing("gone"))) == ["release gone"]
    assert told(with_rest(record("old"), unit=unit_with(prune=False))) == ["release old"]
    moved = plan(
        prepared(desired("stays")), snapshot(record("stays"), record("moved"), wanted=frozenset({key("moved")})), UNIT
    )
    assert told(moved) == ["release moved"]


def test_what_is_going_already_is_let_go() -> None:
    """It holds up nothing, and is not deleted twice."""
    going = record("going", 2, readiness=Readiness.TERMINATING)
    made = with_rest(going, record("old", 1))
    assert told(made) == ["release going", "prune old"]


def test_repairs_do_not_prune_what_is_wanted() -> None:
    """A unit that is done prunes nothing, whatever drifts."""
    wanted = prepared(desired("a"), desired("b"))
    made = plan(wanted, snapshot(record("a", entry=8), missing("b"), operation=operation(wanted)), UNIT)
    assert told(made) == ["apply a", "apply b"]


@given(old=RECORDS)
def test_a_removed_unit_takes_everything_along_in_reverse(old: list[Record]) -> None:
    """Its objects are pruned, its marked ones left, whatever isn't there needs nothing."""
    some_kept = [record(each.key.name, each.wave, kept=True) if each.wave > 1 else each for each in old]
    known = {each.key: each for each in (*some_kept, missing("gone"))}
    made = plan_removal(known, UNIT)
    assert {task.key for task in made.tasks} == {each.key for each in known.values() if each.live}
    assert all((task.action is Action.ORPHAN) == known[task.key].kept for task in made.tasks if task.key)
    order = [(task.wave, task.tier, task.key) for task in made.tasks]
    assert order == sorted(order, reverse=True)


def test_what_a_removed_unit_only_waits_for_holds_up_nothing() -> None:
    """An object that is going already comes last, whatever its wave."""
    going = record("going", 2, readiness=Readiness.TERMINATING)
    known = {each.key: each for each in (going, record("a"), record("b", 1))}
    assert told(plan_removal(known, UNIT)) == ["prune b", "prune a", "wait going"]


def test_a_removed_unit_leaves_what_others_render() -> None:
    """Under either policy, with its marks: it is theirs to take over."""
    known = {each.key: each for each in (record("moved"), record("old"))}
    wanted = frozenset({key("moved")})
    assert told(plan_removal(known, UNIT, wanted)) == ["prune old", "release moved"]
    assert told(plan_removal(known, unit_with(deletion_policy="Orphan"), wanted)) == ["orphan old", "release moved"]


def test_what_lost_our_marks_is_released() -> None:
    """Whether the unit lets go of it or goes itself."""
    stripped = record("stripped", marked=False)
    assert told(with_rest(stripped)) == ["release stripped"]
    assert told(plan_removal({stripped.key: stripped}, UNIT)) == ["release stripped"]


@given(old=RECORDS)
def test_a_unit_that_leaves_its_objects_deletes_none(old: list[Record]) -> None:
    """Our marks go, also from what is being deleted or is to be kept."""
    for changed, fact in zip(old, ("kept", "controlled"), strict=False):
        setattr(changed, fact, True)
    unit = Unit(id=UNIT.id, cluster="edge", deletion_policy="Orphan")
    assert {task.action for task in plan_removal({each.key: each for each in old}, unit).tasks} <= {Action.ORPHAN}


def test_what_can_not_be_seen_is_not_taken_for_gone() -> None:
    """While the API service behind a kind doesn't answer, its objects stay the unit's."""
    known = (record("stays"), missing("hidden"))
    wanted = prepared(desired("stays"))
    hidden = key("hidden")
    assert told(plan(wanted, snapshot(*known), UNIT)) == ["release hidden"]
    assert told(plan(wanted, snapshot(*known, unseen=frozenset({(hidden.group, hidden.kind)})), UNIT)) == []


def test_a_crd_stays_while_its_objects_are_wanted() -> None:
    """Pruning it would delete them all, in the same run; the rest is pruned."""
    crd = record("widgets.example.com", kind=CRD)
    served = Resource("example.com", "v1", "Widget", "widgets", namespaced=False)
    widget = dataclasses.replace(desired("w", kind="example.com/v1 Widget"), resource=served)
    made = plan(prepared(widget), snapshot(crd, record("old"), *applied([widget]).values()), UNIT)
    assert told(made) == ["prune old"]
    assert [(problem.reason, problem.key) for problem in made.problems] == [("StillNeeded", crd.key)]
    gone = plan(prepared(desired("stays")), snapshot(crd, record("stays")), UNIT)
    assert told(gone) == ["prune widgets.example.com"]
