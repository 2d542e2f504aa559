"""Why an object is applied; and repairs, which no wave holds up."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.plan import plan
from starling.engine.prepare import Desired
from starling.engine.tasks import DOUBTED, Action, Plan, Snapshot, met
from starling.engine.unit import Phase, Problem
from tests.unit.engine.planning import (
    OBJECTS,
    OTHER,
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

THIRD = "home/shop/Sync.third@edge"
FOREIGN = "elsewhere/shop/Sync.other@edge"
TENANT = "home/garden/Sync.other@edge"


def of_one(known: Record, *, content: str = "d1", create_only: bool = False) -> list[str]:
    """The reasons in the plan of a unit that had succeeded, has this object, and wants it."""
    wanted = prepared(desired("a", content=content, create_only=create_only))
    return [task.reason for task in plan(wanted, snapshot(known, operation=operation(wanted)), UNIT).tasks]


def test_each_reason_to_apply() -> None:
    """And none if there is none."""
    assert of_one(record("a")) == []
    assert of_one(record("a"), content="d2") == ["changed in the manifests"]
    assert of_one(record("a", manifest="")) == ["changed in the manifests"]
    assert of_one(missing("a", manifest="")) == ["new"]
    assert of_one(missing("a")) == ["missing"]
    assert of_one(record("a", entry=8)) == ["drifted"]
    assert of_one(record("a", expected=0)) == [DOUBTED]
    assert of_one(record("a", readiness=Readiness.TERMINATING)) == ["is being deleted, and will be made anew"]


def test_everything_is_applied_when_it_is_due() -> None:
    """What no watch event shows is mended then."""
    wanted = prepared(desired("a"), desired("b", 1))
    known = snapshot(record("a"), record("b", 1), operation=operation(wanted), everything=True)
    assert told(plan(wanted, known, UNIT)) == ["apply a", "apply b"]


def test_what_others_fight_over_rests() -> None:
    """It isn't repaired for now; if it is gone, or its manifest changed, it is applied all the same."""
    for known, expected in ((record("a", entry=8), []), (missing("a"), ["apply a"])):
        wanted = prepared(desired("a"))
        at_rest = snapshot(known, resting=frozenset({key("a")}), operation=operation(wanted))
        assert told(plan(wanted, at_rest, UNIT)) == expected
    changed = prepared(desired("a", content="d2"))
    at_rest = snapshot(record("a", entry=8), resting=frozenset({key("a")}))
    assert told(plan(changed, at_rest, UNIT)) == ["apply a"]


def test_what_is_made_once_is_not_made_again() -> None:
    """Neither when it is gone nor when it has changed; a new name or content is another object."""
    assert of_one(missing("a"), create_only=True) == []
    assert of_one(record("a", entry=8), create_only=True) == []
    wanted = prepared(desired("a", create_only=True))
    made = plan(wanted, snapshot(), UNIT)
    assert [task.action for task in made.tasks] == [Action.CREATE]


@given(objects=OBJECTS, which=st.data())
def test_repairs_wait_for_no_wave(objects: list[Desired], which: st.DataObject) -> None:
    """Drifted and missing objects of a unit that is done are put right at once, in order and without a wait."""
    wanted, known = prepared(*objects), applied(objects)
    drifted = which.draw(st.sets(st.sampled_from(sorted(known))) if known else st.just(set()))
    for each in drifted:
        facts: dict[str, Any] = which.draw(st.sampled_from([{"entry": 9}, {"uid": ""}]))
        known[each] = msgspec.structs.replace(known[each], **facts)
    made = plan(wanted, Snapshot(known, operation=operation(wanted)), UNIT)
    assert [task.key for task in made.tasks] == [each.key for each in wanted.desired if each.key in drifted]
    assert all(task.action is Action.APPLY and not task.renews for task in made.tasks)


@given(objects=OBJECTS, which=st.data())
def test_nor_while_an_operation_goes_on(objects: list[Desired], which: st.DataObject) -> None:
    """What has drifted and needn't change comes first, before anything that the operation waits for."""
    known = applied(objects)
    drifted = which.draw(st.sets(st.sampled_from(sorted(known))) if known else st.just(set()))
    for each in drifted:
        known[each] = msgspec.structs.replace(known[each], entry=9)
    wanted = prepared(*objects, desired("new", 0), desired("later", 1))
    made = plan(wanted, Snapshot(known, operation=operation(wanted, Phase.RUNNING)), UNIT)
    assert {task.key for task in made.tasks[: len(drifted)]} == drifted
    assert all(task.renews or task.action is Action.WAIT for task in made.tasks[len(drifted) :])


# Problems


def blocked_at(wave: int) -> Plan:
    """Of three waves with an old object on the side, one has an object that nobody serves."""
    objects = [desired(name, number) for number, name in enumerate("abc")]
    wanted = prepared(*objects, problems=[Problem("UnknownKind", "no such kind")], blocked=wave)
    return plan(wanted, snapshot(record("old"), record("a", manifest="d0")), UNIT)


def test_a_problem_stops_later_waves_and_no_others() -> None:
    """The rest of its wave goes on, the waits before it hold, and nothing is pruned."""
    assert told(blocked_at(0)) == ["apply a"]
    assert told(blocked_at(1)) == ["apply a", "wait a", "apply b"]
    assert told(blocked_at(2)) == ["apply a", "wait a", "apply b", "wait b", "apply c"]


@pytest.mark.parametrize(("blocked", "theirs"), [(0, 2), (2, 0)])
def test_of_several_problems_the_first_wave_counts(blocked: int, theirs: int) -> None:
    """Wherever they were found; and what is neither wrong nor to be done is counted as unchanged."""
    objects = [desired("a"), desired("b", 1), desired("c", 2), desired("theirs", theirs)]
    wanted = prepared(*objects, problems=[Problem("UnknownKind", "no such kind")], blocked=blocked)
    made = plan(wanted, snapshot(record("c", 2), others={key("theirs"): (OTHER, True)}), UNIT)
    assert told(made) == ["apply a"]
    assert (len(made.problems), made.unchanged) == (2, 1)


def test_what_is_being_deleted_is_waited_for_until_it_is_gone() -> None:
    """Not until it is ready: it never will be."""
    going = record("a", readiness=Readiness.TERMINATING)
    [wait] = plan(prepared(desired("a")), snapshot(going), UNIT).tasks
    assert wait.action is Action.WAIT
    assert not met(wait, {going.key: going})
    assert not met(wait, {going.key: record("a")})
    assert met(wait, {going.key: missing("a")})
    assert met(wait, {})


def test_crds_are_waited_for_in_a_wave_with_a_problem() -> None:
    """What goes on goes on in order."""
    objects = [desired("crd", 0, "apiextensions.k8s.io/v1 CustomResourceDefinition"), desired("b"), desired("c", 1)]
    wanted = prepared(*objects, problems=[Problem("UnknownKind", "no such kind")], blocked=0)
    assert told(plan(wanted, snapshot(), UNIT)) == ["apply crd", "wait crd", "apply b"]


def test_repairs_go_on_whatever_is_wrong() -> None:
    """An object of a later wave that drifts isn't left so because of a problem in an earlier one."""
    wanted = prepared(desired("a"), desired("b", 5), problems=[Problem("UnknownKind", "no such kind")], blocked=0)
    known = snapshot(record("a"), record("b", 5, entry=8), operation=operation(wanted, Phase.FAILED))
    assert told(plan(wanted, known, UNIT)) == ["apply b"]


def test_what_belongs_to_another_is_refused_or_moves() -> None:
    """By name of the owner; only one of the same tenant that no longer wants it lets it go."""
    wanted = prepared(desired("a"), desired("b"))
    for owner, renders in ((OTHER, True), (TENANT, False), (FOREIGN, False)):
        made = plan(wanted, Snapshot({}, {key("a"): (owner, renders)}), UNIT)
        [problem] = made.problems
        assert (problem.reason, problem.key) == ("OwnedByAnother", key("a"))
        assert owner in problem.message
        assert told(made) == ["apply b"]
    moved = plan(wanted, Snapshot({}, {key("a"): (THIRD, False)}), UNIT)
    assert [task.reason for task in moved.tasks] == [f"moves here from {THIRD}", "new"]
