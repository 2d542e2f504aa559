"""What a unit's status says, when there is something to do for it, and when time alone gives a reason to look."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.aio import Backoff
from starling.engine.cache import ClusterCache, Record
from starling.engine.contention import Contention
from starling.engine.health import Readiness, assess
from starling.engine.inventory import baseline
from starling.engine.ownership import LABEL
from starling.engine.state import GRACE, UnitState, as_left, recover, status_of, unknown_status
from starling.engine.tasks import Action, Task
from starling.engine.unit import MOST_PROBLEMS, Drift, Phase, Problem, Unit, UnitStatus
from starling.kube import Unreachable
from starling.objects import ObjectKey
from tests.unit.engine.planning import UNIT, key, missing, operation, prepared, record

NOW = 1000.0
WANTED = prepared()
PROBLEM = Problem("Refused", "no")


def state_with(**facts: Any) -> UnitState:
    """A unit that is synced and looked at, but for the facts given."""
    usual = {"unit": UNIT, "look": False, "operation": operation(WANTED), "due": NOW + 50}
    return UnitState(**{**usual, **facts})


def owned(*records: Record) -> dict[ObjectKey, Record]:
    """Records by their keys."""
    return {each.key: each for each in records}


# Status


def test_a_unit_is_as_ready_as_the_least_of_its_objects() -> None:
    """And the message names it."""
    there = owned(record("a"), record("b", readiness=Readiness.IN_PROGRESS, message="0 of 1"))
    status = status_of(state_with(), there, NOW)
    assert (status.readiness, status.message) == (Readiness.IN_PROGRESS, "ConfigMap b is InProgress: 0 of 1")
    assert status.objects == {Readiness.CURRENT: 1, Readiness.IN_PROGRESS: 1}
    assert status.inventory == {key("a"): "d1", key("b"): "d1"}
    assert status_of(state_with(), {}, NOW).readiness is Readiness.CURRENT


def test_a_unit_is_no_readier_than_its_operation() -> None:
    """All that is there may be Current while the next wave is still to come."""
    running = operation(WANTED, Phase.RUNNING)
    for of in (None, running):
        assert status_of(state_with(operation=of), owned(record("a")), NOW).readiness is Readiness.IN_PROGRESS


def test_what_is_still_to_come_is_not_missing() -> None:
    """Objects of later waves are in the record before they are there; the message is about what is waited for."""
    there = owned(record("a", readiness=Readiness.IN_PROGRESS, message="soon"), missing("b", manifest=""))
    status = status_of(state_with(operation=operation(WANTED, Phase.RUNNING)), there, NOW)
    assert (status.readiness, status.message) == (Readiness.IN_PROGRESS, "ConfigMap a is InProgress: soon")
    lost = status_of(state_with(), owned(missing("a"), missing("done", once=True)), NOW)
    assert (lost.readiness, lost.message) == (Readiness.MISSING, "ConfigMap a is Missing: not there")


def test_a_problem_is_a_failure_and_is_told() -> None:
    """It comes first; objects that failed by themselves are problems, too, and there is an end to them."""
    broken = record("b", readiness=Readiness.FAILED, message="crashes")
    status = status_of(state_with(problems=(PROBLEM,)), owned(record("a"), broken), NOW)
    assert (status.readiness, status.message) == (Readiness.FAILED, "no")
    assert [problem.key for problem in status.problems] == [None, broken.key]
    many = state_with(problems=(PROBLEM,) * 100)
    assert len(status_of(many, {}, NOW).problems) == MOST_PROBLEMS


def test_a_complaint_is_told_and_harms_nothing() -> None:
    """Of an object that is Current; one that isn't yet says so by its readiness."""
    there = owned(record("a", message="no endpoints"), record("b", readiness=Readiness.IN_PROGRESS, message="soon"))
    status = status_of(state_with(), there, NOW)
    assert [(each.reason, each.key) for each in status.problems] == [("Complains", key("a"))]
    assert status.readiness is Readiness.IN_PROGRESS


def test_one_that_takes_too_long_has_failed() -> None:
    """Not before its time; and it is well again when its objects are."""
    slow = owned(record("a", readiness=Readiness.IN_PROGRESS, message="soon"))
    state = state_with(unit=Unit(id=UNIT.id, cluster="edge", timeout=10))
    state.observe(slow, NOW)
    assert status_of(state, slow, NOW + 9.9).readiness is Readiness.IN_PROGRESS
    late = status_of(state, slow, NOW + 10)
    assert (late.readiness, late.message) == (
        Readiness.FAILED, "not ready after 10 s: ConfigMap a is InProgress: soon",
    )  # fmt: skip
    state.observe(owned(record("a")), NOW + 20)
    assert status_of(state, owned(record("a")), NOW + 20).readiness is Readiness.CURRENT
    state.observe(slow, NOW + 30)
    assert status_of(state, slow, NOW + 35).readiness is Readiness.IN_PROGRESS


def test_a_failure_from_before_is_not_that_of_what_is_new() -> None:
    """Not while the object is to be renewed, nor for a while after that; what else has failed has failed."""
    there = owned(record("a", readiness=Readiness.FAILED, message="crashes"), record("b"))
    state = state_with(operation=operation(WANTED, Phase.RUNNING))
    assert status_of(state, there, NOW).readiness is Readiness.FAILED
    state.excuse([key("a"), key("b")], there)
    begun = status_of(state, there, NOW + 1000)
    assert (begun.readiness, begun.problems) == (Readiness.IN_PROGRESS, ())
    assert begun.message == "ConfigMap a is InProgress: had failed before this was applied: crashes"
    broken = there | owned(record("b", readiness=Readiness.FAILED, message="too"))
    assert [each.key for each in status_of(state, broken, NOW).problems] == [key("b")]

    state.renewed({key("a"), None}, NOW)
    assert (status_of(state, there, NOW + GRACE - 0.1).readiness, state.next_look(NOW)) == (
        Readiness.IN_PROGRESS, GRACE,
    )  # fmt: skip
    assert status_of(state, there, NOW + GRACE).readiness is Readiness.FAILED


def test_what_has_been_well_since_is_excused_no_more() -> None:
    """Nor is what isn't to be renewed any more; what is on its way may still say that it had failed."""
    failed = owned(record("a", readiness=Readiness.FAILED))
    state = state_with()
    state.excuse([key("a")], failed)
    state.observe(owned(record("a", readiness=Readiness.IN_PROGRESS)), NOW)
    assert status_of(state, failed, NOW).readiness is Readiness.IN_PROGRESS
    state.observe(owned(record("a")), NOW)
    assert status_of(state, failed, NOW).readiness is Readiness.FAILED
    state.excuse([key("a")], failed)
    state.excuse([], failed)
    assert status_of(state, failed, NOW).readiness is Readiness.FAILED


@pytest.mark.parametrize(
    "late", [record("a", readiness=Readiness.IN_PROGRESS), record("a", readiness=Readiness.TERMINATING), missing("a")]
)
def test_whatever_is_unfinished_takes_time(late: Record) -> None:
    """Also what doesn't go, and what doesn't come."""
    state = state_with(unit=Unit(id=UNIT.id, cluster="edge", timeout=10))
    state.observe(owned(late), NOW)
    assert status_of(state, owned(late), NOW + 10).readiness is Readiness.FAILED


def test_a_cluster_that_is_away_leaves_the_unit_unknown() -> None:
    """With the cause; what it has isn't forgotten, neither what was seen nor what was written down before."""
    gone = Unreachable("list ConfigMap", "nobody answers")
    status = status_of(state_with(), owned(record("a")), NOW, gone)
    assert (status.readiness, status.message) == (Readiness.UNKNOWN, gone.message)
    assert status.inventory == {key("a"): "d1"}
    written = UnitStatus(inventory={key("a"): "d1"}, baseline="b", operation=operation(WANTED), revision="r")
    state = UnitState(unit=UNIT)
    state.remember(written)
    unseen = unknown_status(state, gone)
    assert (unseen.readiness, unseen.message) == (Readiness.UNKNOWN, gone.message)
    assert (unseen.inventory, unseen.baseline, unseen.operation) == (
        written.inventory, written.baseline, written.operation,
    )  # fmt: skip


def test_what_holds_a_unit_is_its_message() -> None:
    """Whatever else might be said."""
    state = state_with(unit=Unit(id=UNIT.id, cluster="edge", held="waits for base"))
    assert status_of(state, owned(missing("a")), NOW).message == "waits for base"


def test_a_status_is_news_only_if_it_differs() -> None:
    """From what is written down, the inventory included."""
    state = state_with()
    status = status_of(state, owned(record("a")), NOW)
    assert state.says_anything_new(status)
    state.wrote(status)
    assert not state.says_anything_new(status_of(state, owned(record("a")), NOW + 5))
    assert state.says_anything_new(status_of(state, owned(record("a", manifest="d2")), NOW))


def test_remembering_is_not_writing() -> None:
    """What a process goes on with may be newer than what is written down."""
    state = state_with()
    state.remember(status_of(state, owned(record("a")), NOW))
    assert state.says_anything_new(state.stored)


def test_what_was_written_down_is_remembered_once() -> None:
    """All that only the record can tell; also when it is read again, since its cluster was connected anew."""
    drift, common = Drift(key("a"), ("data.x",), "someone", "12:00"), Drift(key("a"), ("data.y",), "other", "12:00")
    written = UnitStatus(
        revision="r2", applied_revision="r1", operation=operation(WANTED), drift=(drift,), shared=(common,)
    )
    state = UnitState(unit=UNIT, look=False)
    for _ in range(2):
        state.remember(written)
    assert state.look
    told = status_of(state, {}, NOW)
    assert (told.revision, told.applied_revision, told.operation) == ("r2", "r1", written.operation)
    assert (told.drift, told.shared) == ((drift,), (common,))


@pytest.mark.parametrize("left", [True, False], ids=["as left", "changed"])
def test_what_was_written_down_is_compared_once(left: bool) -> None:
    """Then it is what is there that counts; the baseline stays only if that is as it was."""
    cache = ClusterCache(LABEL, assess, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    cache.expect(UNIT.id, {key("a"): ""}, as_left=False)
    entry = cache.owned(UNIT.id)[key("a")].entry
    written = UnitStatus(
        inventory={key("a"): "d1"}, baseline=baseline([(key("a"), "d1", entry if left else entry + 1)])
    )
    state = UnitState(unit=UNIT)
    state.remember(written)
    recover(UNIT, state, cache, NOW)
    assert state.baseline == (written.baseline if left else "")
    assert cache.owned(UNIT.id)[key("a")].manifest == "d1"
    assert state.stored_kinds() == frozenset()
    assert NOW < state.due <= NOW + UNIT.interval


def test_the_baseline_tells_whether_anything_changed() -> None:
    """Objects that are no longer rendered don't count; without a baseline nothing is known to be as it was left."""
    left = baseline([(key("a"), "d1", 7)])
    written = UnitStatus(inventory={key("a"): "d1", key("old"): ""}, baseline=left)
    assert as_left(owned(record("a"), record("old", manifest="", entry=3)), written)
    assert as_left(owned(record("a")), written)
    assert not as_left(owned(record("a", entry=8)), written)
    assert not as_left({}, written)
    assert not as_left(owned(record("a")), UnitStatus(inventory={key("a"): "d1"}))


# Is there something to do?


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({}, False),
        ({"look": True}, True),
        ({"retry_at": NOW + 1}, False),
        ({"retry_at": NOW}, True),
        ({"due": NOW}, True),
        ({"due": NOW, "retry_at": NOW + 1}, False),
        ({"waiting": Task(Action.WAIT, "", 0, awaited=(key("a"),))}, True),
        ({"waiting": Task(Action.WAIT, "", 0, awaited=(key("a"), key("other")))}, False),
        ({"waiting": Task(Action.WAIT, "", 0, key=key("a"), awaited=(key("a"),))}, False),
        ({"waiting": Task(Action.WAIT, "", 0, key=key("other"), awaited=(key("other"),))}, True),
    ],
)
def test_time_waits_and_questions_give_reasons(facts: dict[str, Any], wanted: bool) -> None:
    """Of a unit whose one object is as it should be."""
    assert state_with(**facts).wants_operation(owned(record("a")), NOW) is wanted


@pytest.mark.parametrize(
    ("drifted", "wanted"),
    [
        (record("a", entry=8), True),
        (missing("a"), True),
        (record("a", entry=8, expected=0), False),
        (missing("a", once=True), False),
        (record("a", entry=8, readiness=Readiness.TERMINATING), False),
    ],
)
def test_drift_gives_a_reason(drifted: Record, wanted: bool) -> None:
    """Unless nothing can or should be done about it."""
    assert state_with().wants_operation(owned(drifted, record("b")), NOW) is wanted


def test_drift_of_what_failed_waits_for_the_next_try() -> None:
    """And other drift doesn't."""
    state = state_with(problems=(Problem("Refused", "no", key("a")),), retry_at=NOW + 5)
    assert not state.wants_operation(owned(record("a", entry=8)), NOW)
    assert state.wants_operation(owned(record("a", entry=8), record("b", entry=8)), NOW)


@given(entries=st.dictionaries(st.sampled_from("abcd"), st.integers(8, 9), min_size=1))
def test_drift_that_was_left_is_no_reason_again(entries: dict[str, int]) -> None:
    """A sync that was vetoed, refused or failed would else follow the last without a pause; new drift is another."""
    there = owned(*(record(name, entry=entry) for name, entry in entries.items()))
    state = state_with()
    state.left = state.amiss(there, NOW)
    assert not state.wants_operation(there, NOW)
    first = next(iter(there))
    there[first].entry += 10
    assert state.wants_operation(there, NOW)


def test_what_is_fought_over_rests() -> None:
    """Until its time is up."""
    contention = Contention(60.0)
    for _ in range(3):
        contention.taken(Drift(key("a"), ("data.x",), "someone", "12:00"), NOW)
    state = state_with(contention=contention, due=math.inf)
    there = owned(record("a", entry=8))
    assert not state.wants_operation(there, NOW + 1)
    assert state.next_look(NOW + 1) == 59
    assert state.wants_operation(there, NOW + 61)


# When to look again


def test_everything_is_due_again_within_the_interval() -> None:
    """Never later than was asked for, and not much earlier."""
    state = state_with()
    for _ in range(20):
        state.put_off(NOW)
        assert 0.9 * UNIT.interval <= state.due - NOW <= UNIT.interval


TIMES = st.floats(0, 2 * NOW) | st.just(NOW)


@given(
    due=TIMES | st.just(math.inf),
    retry_at=TIMES | st.none(),
    since=TIMES | st.none(),
    timeout=st.floats(0.001, NOW),
    took=st.integers(0, 4),
)
def test_a_look_is_never_followed_by_the_next_at_once(
    due: float, retry_at: float | None, since: float | None, timeout: float, took: int
) -> None:
    """Times that are past are no reason to look, or a unit that is held would be looked at without end."""
    contention = Contention(60.0)
    for _ in range(took):
        contention.taken(Drift(key("a"), ("x",), "someone", ""), NOW)
    unit = Unit(id=UNIT.id, cluster="edge", timeout=timeout)
    state = state_with(
        unit=unit, due=due, retry_at=retry_at, in_progress_since=since, contention=contention, backoff=Backoff()
    )
    wait = state.next_look(NOW)
    assert wait is None or wait > 0
    to_come = [due, *([retry_at] if retry_at is not None else []), *([since + timeout] if since is not None else [])]
    for time in to_come:
        assert time <= NOW or time == math.inf or (wait is not None and wait <= time - NOW)
    if since is not None:
        assert state.overdue(NOW) == (since + timeout <= NOW)
