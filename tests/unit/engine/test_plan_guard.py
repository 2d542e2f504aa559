"""The guard: a plan that would delete all that a unit has is refused, until someone says that it is meant."""

import re
from dataclasses import replace

import msgspec
from hypothesis import assume, given

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.plan import plan
from starling.engine.prepare import Desired
from starling.engine.tasks import Action, Plan, Snapshot
from starling.engine.unit import Unit
from starling.objects import ObjectKey
from tests.unit.engine.planning import OBJECTS, RECORDS, UNIT, desired, key, missing, prepared, record, snapshot


def of(records: list[Record]) -> dict[ObjectKey, Record]:
    """Records by their keys."""
    return {each.key: each for each in records}


def confirmation(made: Plan) -> str:
    """The digest that a refusal prints."""
    assert made.refusal is not None
    found = re.search(r"starling\.dev/confirm: (\S+)$", made.refusal.hint)
    assert found is not None
    return found.group(1)


@given(objects=OBJECTS, old=RECORDS)
def test_deleting_everything_is_refused(objects: list[Desired], old: list[Record]) -> None:
    """Whatever else the plan would bring: nothing that the unit had would stay."""
    assume(old)
    made = plan(prepared(*objects), Snapshot(of(old)), UNIT)
    assert made.refusal is not None
    assert made.refusal.reason == "WouldDeleteEverything"
    assert f"{len(old)} objects" in made.refusal.message
    assert UNIT.id in made.refusal.message
    assert confirmation(made) == made.digest


@given(objects=OBJECTS, old=RECORDS)
def test_one_object_that_stays_is_enough(objects: list[Desired], old: list[Record]) -> None:
    """The path can't be all wrong then."""
    made = plan(prepared(*objects, desired("stays", 9)), Snapshot({**of(old), key("stays"): record("stays")}), UNIT)
    assert made.refusal is None


def test_a_missing_object_is_enough() -> None:
    """It may be gone only to be made anew; or an operation that had passed the guard was cut short before it came."""
    lost = missing("lost")
    assert plan(prepared(desired("lost")), snapshot(lost, record("old")), UNIT).refusal is None
    intended = msgspec.structs.replace(lost, manifest="")
    assert plan(prepared(desired("lost")), snapshot(intended, record("old")), UNIT).refusal is None


def test_what_deletes_nothing_is_no_matter_for_it() -> None:
    """Kept, controlled, handed over, already going, or not pruned at all."""
    harmless = [
        snapshot(record("a", kept=True)),
        snapshot(record("a", controlled=True)),
        snapshot(record("a"), wanted=frozenset({key("a")})),
        snapshot(record("a", readiness=Readiness.TERMINATING)),
        snapshot(missing("a")),
        snapshot(),
    ]
    assert [plan(prepared(), known, UNIT).refusal for known in harmless] == [None] * len(harmless)
    assert plan(prepared(), snapshot(record("a")), Unit(id=UNIT.id, cluster="edge", prune=False)).refusal is None


def test_what_is_withheld_stays() -> None:
    """An object of a kind that isn't served just now is not the unit's end."""
    wanted = replace(prepared(), withheld=frozenset({key("a")}))
    assert plan(wanted, snapshot(record("a"), record("b")), UNIT).refusal is None


@given(objects=OBJECTS, old=RECORDS)
def test_it_is_done_when_it_is_meant(objects: list[Desired], old: list[Record]) -> None:
    """By allowEmpty, or by the confirmation that the refusal asked for; then everything old goes."""
    assume(old)
    wanted, known = prepared(*objects), Snapshot(of(old))
    digest = confirmation(plan(wanted, known, UNIT))
    for said in ({"allow_empty": True}, {"confirm": digest}):
        made = plan(wanted, known, msgspec.structs.replace(UNIT, **said))
        assert made.refusal is None
        assert {task.key for task in made.tasks if task.action is Action.PRUNE} == set(of(old))


@given(objects=OBJECTS, old=RECORDS)
def test_a_confirmation_is_for_one_plan(objects: list[Desired], old: list[Record]) -> None:
    """Other manifests, other objects, or the same ones made anew since: asked again."""
    assume(old)
    wanted, known = prepared(*objects), of(old)
    unit = msgspec.structs.replace(UNIT, confirm=confirmation(plan(wanted, Snapshot(known), UNIT)))
    first = old[0]
    again = {**known, first.key: msgspec.structs.replace(first, uid="another")}
    more = {**known, key("more"): record("more")}
    assert plan(wanted, Snapshot(known), unit).refusal is None
    assert plan(prepared(*objects, desired("new", 9)), Snapshot(known), unit).refusal is not None
    assert plan(wanted, Snapshot(more), unit).refusal is not None
    assert plan(wanted, Snapshot(again), unit).refusal is not None
    status_moved_on = {**known, first.key: msgspec.structs.replace(first, version=99)}
    assert plan(wanted, Snapshot(status_moved_on), unit).refusal is None
