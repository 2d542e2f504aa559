"""The order of a plan: wave, tier, name; waits between waves and after CRDs; waves that are done aren't waited for."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given

from starling.engine.health import Readiness
from starling.engine.order import tier
from starling.engine.plan import plan
from starling.engine.prepare import Desired
from starling.engine.tasks import Action, Plan, Snapshot, Task, met
from starling.engine.unit import Phase
from starling.objects import ObjectKey
from tests.unit.engine.planning import (
    CRD,
    OBJECTS,
    UNIT,
    WAVES,
    applied,
    desired,
    key,
    operation,
    prepared,
    record,
    snapshot,
    told,
)

CRD_TIER = tier("apiextensions.k8s.io", "CustomResourceDefinition")


def first(objects: Sequence[Desired]) -> Plan:
    """The plan of a unit of which nothing is there."""
    return plan(prepared(*objects), Snapshot({}), UNIT)


def places(made: Plan) -> dict[ObjectKey, int]:
    """Where in the plan each object's task stands."""
    return {task.key: index for index, task in enumerate(made.tasks) if task.key is not None}


def waits(made: Plan) -> list[tuple[int, Task]]:
    """The waits and where they stand."""
    return [(index, task) for index, task in enumerate(made.tasks) if task.action is Action.WAIT]


@given(objects=OBJECTS)
def test_every_object_is_applied_once_by_wave_tier_and_name(objects: list[Desired]) -> None:
    """A first plan has one task for each object, and nothing else but waits."""
    made = first(objects)
    assert [task.key for task in made.work] == [
        each.key for each in sorted(objects, key=lambda each: (each.wave, each.tier, each.key))
    ]
    assert {task.action for task in made.work} <= {Action.APPLY}
    assert (made.problems, made.refusal, made.unchanged) == ((), None, 0)


@given(objects=OBJECTS)
def test_between_waves_all_of_the_wave_is_waited_for(objects: list[Desired]) -> None:
    """One wait after each wave but the last, for just its objects, after all of them and before all later ones."""
    made = first(objects)
    where = places(made)
    waves = sorted({each.wave for each in objects})
    ends = [(index, task) for index, task in waits(made) if task.ends_wave]
    assert [task.wave for _, task in ends] == waves[:-1]
    for index, task in ends:
        assert set(task.awaited) == {each.key for each in objects if each.wave == task.wave}
        for each in objects:
            assert (where[each.key] < index) == (each.wave <= task.wave)


@given(objects=OBJECTS)
def test_crds_are_waited_for_before_what_may_need_them(objects: list[Desired]) -> None:
    """In every wave that has CRDs and kinds of later tiers, a wait for just these CRDs stands between the two."""
    made = first(objects)
    where = places(made)
    after_crds = {task.wave: (index, task) for index, task in waits(made) if not task.ends_wave}
    for wave in {each.wave for each in objects}:
        members = [each for each in objects if each.wave == wave]
        crds = {each.key for each in members if each.tier == CRD_TIER}
        later = [each for each in members if each.tier > CRD_TIER]
        assert (wave in after_crds) == bool(crds and later)
        if wave in after_crds:
            index, task = after_crds[wave]
            assert set(task.awaited) == crds
            assert all(where[each] < index for each in crds)
            assert all(index < where[each.key] for each in later)


@given(objects=OBJECTS, passed=WAVES)
def test_waves_that_are_done_are_not_waited_for(objects: list[Desired], passed: int) -> None:
    """An operation that goes on remembers the wave it got to; another one's is of no interest."""
    wanted = prepared(*objects)
    going_on = plan(wanted, Snapshot({}, operation=operation(wanted, Phase.RUNNING, passed)), UNIT)
    assert all(task.wave > passed for _, task in waits(going_on) if task.ends_wave)
    assert [task.wave for _, task in waits(going_on) if task.ends_wave] == [
        wave for wave in sorted({each.wave for each in objects})[:-1] if wave > passed
    ]
    others = operation(prepared(desired("another")), Phase.RUNNING, passed)
    assert plan(wanted, Snapshot({}, operation=others), UNIT) == first(objects)


@given(objects=OBJECTS)
def test_a_unit_that_is_as_it_should_be_has_nothing_to_do(objects: list[Desired]) -> None:
    """Once the operation succeeded there isn't even a wait; before, there are waits alone, and all are met."""
    wanted, there = prepared(*objects), applied(objects)
    done = plan(wanted, Snapshot(there, operation=operation(wanted)), UNIT)
    assert (done.tasks, done.gated, done.unchanged) == ((), False, len(objects))
    unfinished = plan(wanted, Snapshot(there, operation=operation(wanted, Phase.RUNNING)), UNIT)
    assert unfinished.work == ()
    assert unfinished.gated
    assert all(met(task, there) for task in unfinished.tasks)


@given(objects=OBJECTS)
def test_what_is_not_current_is_not_met(objects: list[Desired]) -> None:
    """A wait for a wave is met only when all of it is Current, and an object of which nothing is known isn't."""
    for _, task in waits(first(objects)):
        awaited = [each for each in objects if each.key in task.awaited]
        assert met(task, applied(awaited))
        assert not met(task, applied(awaited[1:]))
        assert not met(task, {**applied(awaited), **applied(awaited[:1], readiness=Readiness.IN_PROGRESS)})


def test_a_wave_of_unchanged_objects_is_waited_for_too() -> None:
    """The next wave may rely on what was there already."""
    objects = [desired("a", 0), desired("b", 1, content="d2")]
    made = plan(prepared(*objects), snapshot(record("a", 0), record("b", 1)), UNIT)
    assert told(made) == ["wait a", "apply b"]


def test_the_order_in_a_story() -> None:
    """CRDs, their objects, then the next wave."""
    made = first([desired("w", 0, "example.com/v1 Widget"), desired("crd", 0, CRD), desired("z", 3)])
    assert told(made) == ["apply crd", "wait crd", "apply w", "wait crd,w", "apply z"]
    assert [str(task) for task in made.tasks if task.key == key("z")] == ["apply ConfigMap z: new"]
    assert all(one.wave <= other.wave for one, other in pairwise(made.tasks))
