"""What becomes of objects that are no longer in the manifests: last, in reverse, and never what must stay."""

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.plan import plan
from starling.engine.prepare import Desired
from starling.engine.removals import plan_removal
from starling.engine.tasks import Action, Plan, Snapshot
from starling.engine.unit import Problem, Unit
from starling.objects import ObjectKey
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
    made = plan_removal(Snapshot(known), UNIT)
    assert {task.key for task in made.tasks} == {each.key for each in known.values() if each.live}
    assert all((task.action is Action.ORPHAN) == known[task.key].kept for task in made.tasks if task.key)
    order = [(task.wave, task.tier, task.key) for task in made.tasks]
    assert order == sorted(order, reverse=True)


def test_what_a_removed_unit_only_waits_for_holds_up_nothing() -> None:
    """An object that is going already comes last, whatever its wave."""
    going = record("going", 2, readiness=Readiness.TERMINATING)
    known = {each.key: each for each in (going, record("a"), record("b", 1))}
    assert told(plan_removal(Snapshot(known), UNIT)) == ["prune b", "prune a", "wait going"]


def test_a_removed_unit_leaves_what_others_render() -> None:
    """Under either policy, with its marks: it is theirs to take over."""
    known = {each.key: each for each in (record("moved"), record("old"))}
    wanted = frozenset({key("moved")})
    assert told(plan_removal(Snapshot(known, wanted=wanted), UNIT)) == ["prune old", "release moved"]
    leaving = unit_with(deletion_policy="Orphan")
    assert told(plan_removal(Snapshot(known, wanted=wanted), leaving)) == ["orphan old", "release moved"]


def test_what_lost_our_marks_is_released() -> None:
    """Whether the unit lets go of it or goes itself."""
    stripped = record("stripped", marked=False)
    assert told(with_rest(stripped)) == ["release stripped"]
    assert told(plan_removal(snapshot(stripped), UNIT)) == ["release stripped"]


@given(old=RECORDS)
def test_a_unit_that_leaves_its_objects_deletes_none(old: list[Record]) -> None:
    """Our marks go, also from what is being deleted or is to be kept."""
    for changed, fact in zip(old, ("kept", "controlled"), strict=False):
        setattr(changed, fact, True)
    unit = Unit(id=UNIT.id, cluster="edge", deletion_policy="Orphan")
    assert {task.action for task in plan_removal(snapshot(*old), unit).tasks} <= {Action.ORPHAN}


def test_what_can_not_be_seen_is_not_taken_for_gone() -> None:
    """While the API service behind a kind doesn't answer, its objects stay the unit's."""
    known = (record("stays"), missing("hidden"))
    wanted = prepared(desired("stays"))
    hidden = key("hidden")
    assert told(plan(wanted, snapshot(*known), UNIT)) == ["release hidden"]
    assert told(plan(wanted, snapshot(*known, unseen=frozenset({(hidden.group, hidden.kind)})), UNIT)) == []


DEFINITIONS = {("example.com", "Widget"): "widgets.example.com"}
HOLDERS = pytest.mark.parametrize(
    ("holder", "held"),
    [
        (record("shop", kind="v1 Namespace"), {"namespace": "shop"}),
        (record("widgets.example.com", kind=CRD), {"kind": "example.com/v1 Widget"}),
    ],
    ids=["a namespace", "a CRD"],
)


@HOLDERS
def test_what_holds_something_wanted_is_not_pruned(holder: Record, held: dict[str, Any]) -> None:
    """Pruning it would delete that too, in the same run; the rest is pruned."""
    wanted = prepared(desired("it", **held))
    known = (holder, record("old"), record("it", **held))
    made = plan(wanted, snapshot(*known, definitions=DEFINITIONS), UNIT)
    assert (told(made), made.unchanged) == (["prune old"], 1)
    assert [(problem.reason, problem.key) for problem in made.problems] == [("StillNeeded", holder.key)]
    assert str(key("it", **held)) in made.problems[0].message


@HOLDERS
def test_what_may_hold_something_wanted_is_not_pruned(holder: Record, held: dict[str, Any]) -> None:
    """A manifest with a problem counts."""
    wanted = dataclasses.replace(prepared(desired("stays")), withheld=frozenset({key("it", **held)}))
    made = plan(wanted, snapshot(holder, record("stays"), definitions=DEFINITIONS), UNIT)
    assert [problem.reason for problem in made.problems] == ["StillNeeded"]


@HOLDERS
def test_what_holds_nothing_wanted_goes(holder: Record, held: dict[str, Any]) -> None:
    """Also together with what is in it, and with what its controller is about to delete."""
    goes = record("it", **held)
    controlled = record("it", **held, controlled=True)
    going = record("it", **held, readiness=Readiness.TERMINATING)
    for known in ([], [goes], [controlled], [going]):
        made = plan(
            prepared(desired("stays")), snapshot(holder, record("stays"), *known, definitions=DEFINITIONS), UNIT
        )
        assert f"prune {holder.key.name}" in told(made)
        assert made.problems == ()
        removal = plan_removal(snapshot(holder, *known, definitions=DEFINITIONS), UNIT)
        assert f"prune {holder.key.name}" in told(removal)


@HOLDERS
@pytest.mark.parametrize("occupied", [False, True])
@pytest.mark.parametrize("why", ["kept", "stripped"])
def test_what_holds_something_that_stays_is_left(
    holder: Record, held: dict[str, Any], why: str, occupied: bool
) -> None:
    """Something marked to be kept, or from which someone took our marks; for good, for it won't be known later."""
    stays = record("it", **held, kept=why == "kept", marked=why != "stripped")
    others = frozenset({holder.key}) if occupied else frozenset[ObjectKey]()
    known = snapshot(holder, record("stays"), stays, occupied=others, definitions=DEFINITIONS)
    made = plan(prepared(desired("stays")), known, UNIT)
    assert made.work[0].reason.endswith(f", but {stays.key} stays, and would go along")
    for task in (made.work[0], plan_removal(known, UNIT).work[0]):
        # Before what is in it: a process that is killed in between won't know of that any more.
        assert (task.action, task.key) == (Action.ORPHAN, holder.key)


@HOLDERS
def test_what_others_have_objects_in_is_left_for_now(holder: Record, held: dict[str, Any]) -> None:
    """It stays the unit's, to be pruned later; but a unit that goes leaves it, and one that needs it says so."""
    occupied = frozenset({holder.key})
    known = snapshot(holder, record("stays"), occupied=occupied, definitions=DEFINITIONS)
    assert told(plan(prepared(desired("stays")), known, UNIT)) == [f"release {holder.key.name}"]
    assert f"orphan {holder.key.name}" in told(plan_removal(known, UNIT))
    contradicted = plan(prepared(desired("it", **held)), known, UNIT)
    assert [problem.reason for problem in contradicted.problems] == ["StillNeeded"]


@HOLDERS
def test_what_holds_something_wanted_moves_all_the_same(holder: Record, held: dict[str, Any]) -> None:
    """Another unit renders it now: it doesn't go."""
    known = (holder, record("it", **held))
    moved = snapshot(*known, wanted=frozenset({holder.key}), definitions=DEFINITIONS)
    made = plan(prepared(desired("it", **held)), moved, UNIT)
    assert told(made) == [f"release {holder.key.name}"]
    assert made.problems == ()


@HOLDERS
def test_what_is_marked_to_be_kept_is_left_whatever_it_holds(holder: Record, held: dict[str, Any]) -> None:
    """That is the way out that the problem names."""
    known = (msgspec.structs.replace(holder, kept=True), record("it", **held))
    made = plan(prepared(desired("it", **held)), snapshot(*known, definitions=DEFINITIONS), UNIT)
    assert told(made) == [f"orphan {holder.key.name}"]
    assert made.problems == ()
