"""Which clusters may move now, one decision at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from starling.api.v1alpha1 import Admitted, Rollout
from starling.fleet import Course, Facts, Member, decide
from tests.unit.fleet.fleets import (
    FACTS,
    LEAVING,
    NEW,
    NOW,
    OLD,
    POLICY,
    THERE,
    WELL,
    admitted,
    fleet,
    leaving,
    names,
)


@pytest.mark.parametrize(
    ("most", "size", "number"),
    [(2, 10, 2), ("10%", 9, 1), ("10%", 29, 2), ("50%", 5, 2), ("100%", 300, 200), (500, 300, 200), (5, 3, 3)],
)
def test_as_many_move_as_may(most: int | str, size: int, number: int) -> None:
    """A number, or a share rounded down and at least one, and never more than a record holds; first by name."""
    decision = decide(Rollout(max_concurrent=most), FACTS, fleet(WELL, size)[::-1], NOW)
    assert names(decision) == [f"a{each:03}" for each in range(number)]
    assert decision.admission == 6
    assert decision.phase == "Progressing"
    assert decision.recheck_after == 600


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(replace(WELL, reachable=False), id="unreachable"),
        pytest.param(replace(WELL, adopted=False), id="unadopted"),
        pytest.param(replace(WELL, mode="Cordoned"), id="cordoned"),
        pytest.param(replace(WELL, mode="Frozen"), id="frozen"),
        pytest.param(THERE, id="there"),
        pytest.param(replace(THERE, state="failed"), id="failed"),
        pytest.param(replace(LEAVING, entry=None), id="not selected, without"),
        pytest.param(replace(LEAVING, mode="Frozen"), id="not selected, frozen"),
    ],
)
def test_others_dont_move(member: Member) -> None:
    """Only clusters that can take it, and haven't, are admitted; those passed over hold up nobody."""
    policy = Rollout(max_concurrent=1, max_failures=1)
    assert names(decide(policy, FACTS, [member], NOW)) == []
    assert names(decide(policy, FACTS, [member, replace(WELL, name="b")], NOW)) == ["b"]


@pytest.mark.parametrize(
    ("policy", "facts", "phase"),
    [
        (POLICY, replace(FACTS, suspended=True), "Suspended"),
        (Rollout(paused=True), FACTS, "Waiting"),
        (POLICY, replace(FACTS, target="", previous=""), "Pending"),
    ],
    ids=["suspended", "paused", "no target"],
)
def test_nobody_moves(policy: Rollout, facts: Facts, phase: str) -> None:
    """While it is stopped, or there is nowhere to go, nobody is admitted."""
    decision = decide(policy, facts, fleet(WELL, 3), NOW)
    assert (names(decision), decision.phase, decision.admission) == ([], phase, 5)


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(WELL, id="entry still to be made"),
        pytest.param(replace(WELL, entry=NEW, acknowledged=False), id="unacknowledged"),
        pytest.param(replace(THERE, acknowledged=False), id="told before"),
        pytest.param(replace(THERE, state="updating"), id="updating"),
        pytest.param(replace(WELL, reachable=False), id="unreachable"),
        pytest.param(replace(THERE, selected=False, state="updating"), id="moving, no longer selected, many leave"),
    ],
)
def test_a_place_is_held_until_told(member: Member) -> None:
    """An admitted cluster keeps others from moving until it has told that it is there."""
    others = [*fleet(WELL, 3, "b"), *fleet(LEAVING, 3, "c")]
    decision = decide(Rollout(max_concurrent=1), admitted("a"), [member, *others], NOW)
    assert names(decision) == ["a"]
    assert decision.admission == 5
    assert decision.recheck_after == 540


@pytest.mark.parametrize(
    ("facts", "member"),
    [
        pytest.param(admitted("a"), THERE, id="succeeded"),
        pytest.param(admitted("a"), replace(THERE, state="failed"), id="failed"),
        pytest.param(admitted("gone"), THERE, id="cluster gone"),
        pytest.param(admitted("a", leave=True), replace(LEAVING, entry=None, listed=False), id="left"),
        pytest.param(admitted("a", leave=True), replace(LEAVING, entry=None, reachable=False), id="left, unreachable"),
        pytest.param(
            admitted("a", minutes=11), replace(WELL, entry=NEW, reachable=False), id="unreachable, but it took it in"
        ),
        pytest.param(admitted("a", restore=True), replace(WELL, reachable=False), id="restored"),
    ],
)
def test_a_place_is_given_up(facts: Facts, member: Member) -> None:
    """Who has told, has gone, or was restored makes room for the next."""
    decision = decide(Rollout(max_concurrent=1, max_failures=1), facts, [member, replace(WELL, name="b")], NOW)
    assert names(decision) == ["b"]


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(LEAVING, id="entry there"),
        pytest.param(replace(LEAVING, entry=None), id="still listed"),
        pytest.param(replace(LEAVING, entry=None, listed=False, acknowledged=False), id="unacknowledged"),
    ],
)
def test_leaving_takes_until_it_is_told(member: Member) -> None:
    """A cluster that is left holds its place until it says that nothing is there."""
    decision = decide(Rollout(max_concurrent=1), admitted("a", leave=True), [member, replace(WELL, name="b")], NOW)
    assert names(decision) == leaving(decision) == ["a"]


def test_who_takes_too_long_has_failed() -> None:
    """It stops the rollout; where a failure is allowed, the next has its place, and it stays on record."""
    stuck = replace(WELL, entry=NEW, reported=NEW, state="updating")
    members = [stuck, *fleet(WELL, 9, "b")]
    facts = admitted("a", minutes=11)
    stopped = decide(Rollout(max_concurrent=1), facts, members, NOW)
    assert (names(stopped), stopped.phase, stopped.summary.failed) == (["a"], "Failed", 1)
    assert "a" in stopped.message
    assert stopped.recheck_after is None
    tolerated = decide(Rollout(max_concurrent=1, max_failures="10%"), facts, members, NOW)
    assert (names(tolerated), tolerated.phase) == (["a", "b000"], "Progressing")


def test_time_begins_with_the_entry() -> None:
    """Who wasn't given the target isn't too slow: it goes on holding its place."""
    decision = decide(Rollout(max_concurrent=1), admitted("a", minutes=11), [WELL, replace(WELL, name="b")], NOW)
    assert decision.admitted == (Admitted(cluster="a", since=NOW, target=NEW, admission=6),)
    assert decision.summary.failed == 0
    paused = decide(Rollout(paused=True), admitted("a", minutes=11), [WELL], NOW)
    assert paused.admitted == decision.admitted


def test_time_begins_again_only_where_there_is_room() -> None:
    """Who seems not to have begun, and whose place was given to another, is no failure and takes no second place."""
    facts = admitted("a", minutes=11, admission=5)
    facts = replace(facts, admitted=(*facts.admitted, *admitted("b").admitted))
    decision = decide(Rollout(max_concurrent=1), facts, [WELL, replace(WELL, name="b")], NOW)
    assert (decision.admitted, decision.admission, decision.summary.failed) == (facts.admitted, 5, 0)


def test_who_never_heard_of_it_is_restored() -> None:
    """An unreachable cluster's entry goes back to what it runs, once its time is up, and that is no failure."""
    away = replace(WELL, entry=NEW, acknowledged=False, reachable=False)
    waiting = decide(POLICY, admitted("a", minutes=9), [away], NOW)
    assert not waiting.admitted[0].restore
    decision = decide(POLICY, admitted("a", minutes=11), [away], NOW)
    since = NOW - timedelta(minutes=11)
    assert decision.admitted == (Admitted(cluster="a", since=since, target=NEW, admission=6, restore=True),)
    assert (decision.summary.failed, decision.summary.unreachable) == (0, 1)


@pytest.mark.parametrize(
    ("member", "facts"),
    [
        pytest.param(replace(WELL, reachable=False), admitted("a", minutes=11, admission=5), id="unreachable"),
        pytest.param(replace(WELL, mode="Frozen"), admitted("a", minutes=11, admission=5), id="frozen"),
        pytest.param(replace(WELL, adopted=False), admitted("a", minutes=11, admission=5), id="unadopted"),
        pytest.param(LEAVING, admitted("a", "c", minutes=11, admission=5), id="not selected, waits to be confirmed"),
        pytest.param(
            replace(LEAVING, mode="Frozen"), admitted("a", minutes=11, admission=5, leave=True), id="left, frozen"
        ),
        pytest.param(
            WELL,
            replace(admitted("a", minutes=11, admission=5, target="t1:between"), previous="t1:between"),
            id="another target",
        ),
    ],
)
def test_what_may_still_be_moved_is_remembered(member: Member, facts: Facts) -> None:
    """A place whose time is up isn't forgotten while its entry is older, but holds up nobody."""
    others = [replace(WELL, name="b"), replace(LEAVING, name="c")]
    decision = decide(Rollout(max_concurrent=1), facts, [member, *others], NOW)
    places = {each.cluster: each for each in decision.admitted}
    assert (places["a"].restore, places["a"].leave, places["a"].admission) == (True, False, 6)
    assert "b" in places
    facts = replace(facts, admitted=decision.admitted, admission=6, previous=NEW)
    assert "a" in names(decide(Rollout(paused=True), facts, [member, *others], NOW))
    written = replace(member, admission=6)
    assert "a" not in names(decide(Rollout(paused=True), facts, [written, *others], NOW))


def test_who_was_restored_takes_its_turn() -> None:
    """It moves by a new place, and one without an entry needs no other end of the old one."""
    facts = admitted("a", restore=True, admission=5)
    assert decide(POLICY, facts, [WELL], NOW).admitted == facts.admitted
    again = (Admitted(cluster="a", since=NOW, target=NEW, admission=6),)
    assert decide(POLICY, facts, [replace(WELL, admission=5)], NOW).admitted == again
    without = replace(WELL, entry=None, admission=0)
    good = (Admitted(cluster="a", since=NOW, target=OLD, admission=6),)
    assert decide(POLICY, facts, [without], NOW).admitted == good
    assert decide(Rollout(paused=True), facts, [without], NOW).admitted == facts.admitted


@pytest.mark.parametrize(("counter", "arrived"), [(4, False), (5, True), (6, True)])
def test_arriving_takes_an_entry_of_that_admission(counter: int, *, arrived: bool) -> None:
    """What a cluster said when this was the target before doesn't count."""
    decision = decide(POLICY, admitted("a", admission=5), [replace(THERE, admission=counter)], NOW)
    assert (not decision.admitted, decision.course.last_good == NEW) == (arrived, arrived)


def test_arriving_takes_an_acknowledgement() -> None:
    """A cluster that says it is at the target, and hasn't taken in all that it is told, may say so of before."""
    facts = admitted("a")
    assert decide(POLICY, facts, [replace(THERE, acknowledged=False)], NOW).admitted == facts.admitted


def test_a_new_target_takes_those_along_that_move() -> None:
    """They stay admitted, with all their time, and the counter tells old records from new."""
    facts = replace(admitted("b", minutes=9, target="t1:between"), previous="t1:between")
    decision = decide(Rollout(max_concurrent=1), facts, [WELL, replace(WELL, name="b")], NOW)
    assert decision.admitted == (Admitted(cluster="b", since=NOW, target=NEW, admission=6),)
    assert decision.admission == 6
    stuck = replace(WELL, entry="t1:between", reported="t1:between", state="updating")
    facts = replace(admitted("b", minutes=11, target="t1:between"), previous="t1:between")
    assert names(decide(Rollout(max_concurrent=1), facts, [WELL, replace(stuck, name="b")], NOW)) == ["a"]


@pytest.mark.parametrize(("failures", "most", "stops"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, "20%", False)])
def test_more_failures_than_may_be_stop_it(failures: int, most: int | str, *, stops: bool) -> None:
    """Failures at the target count, up to a number or a share rounded down."""
    members = [*fleet(replace(THERE, state="failed"), failures), *fleet(WELL, 10 - failures, "b")]
    decision = decide(Rollout(max_failures=most), FACTS, members, NOW)
    assert (not decision.admitted) == stops
    assert (decision.phase == "Failed") == stops
    assert decision.summary.failed == failures


def test_many_are_left_only_when_confirmed() -> None:
    """A tenth may go, more must be confirmed; the word stays the same while they go, and is for these alone."""
    stay = fleet(THERE, 18)
    assert names(decide(POLICY, FACTS, [*stay, *fleet(LEAVING, 2, "b")], NOW)) == ["b000", "b001"]
    many = [*stay, *fleet(LEAVING, 3, "b")]
    waiting = decide(POLICY, FACTS, many, NOW)
    assert (names(waiting), waiting.phase, waiting.summary.leaving) == ([], "Waiting", 3)
    assert waiting.confirm in waiting.message
    assert decide(POLICY, FACTS, [*many, *fleet(LEAVING, 9, "c")], NOW).confirm == waiting.confirm
    assert decide(POLICY, FACTS, many[1:], NOW).confirm != waiting.confirm
    confirmed = decide(POLICY, replace(FACTS, confirmed=waiting.confirm), many, NOW)
    assert names(confirmed) == leaving(confirmed) == ["b000", "b001"]
    assert not confirmed.confirm
    assert not decide(POLICY, replace(FACTS, confirmed="other"), many, NOW).admitted
    later = decide(POLICY, replace(FACTS, confirmed=waiting.confirm, salt="another Module, or spec"), many, NOW)
    assert (later.admitted, bool(later.confirm)) == ((), True)


@pytest.mark.parametrize(("stay", "asked"), [(27, False), (26, True)])
def test_a_tenth_is_of_all_that_had_it(stay: int, *, asked: bool) -> None:
    """Three of thirty may go unasked, three of twenty-nine not."""
    members = [*fleet(THERE, stay), *fleet(LEAVING, 3, "b")]
    assert bool(decide(POLICY, FACTS, members, NOW).confirm) is asked


def test_one_may_always_go() -> None:
    """A single cluster is left without a question, however few there are; two of three aren't."""
    assert decide(POLICY, FACTS, [replace(THERE, name="b"), LEAVING], NOW).admitted[0].leave
    assert decide(POLICY, FACTS, [replace(THERE, name="c"), *fleet(LEAVING, 2)], NOW).confirm


def test_who_was_to_move_isnt_thereby_to_leave() -> None:
    """Clusters that lose their label while they move are asked about as any other."""
    members = [*fleet(replace(LEAVING, entry=NEW), 2), *fleet(THERE, 3, "b")]
    decision = decide(POLICY, admitted("a000", "a001"), members, NOW)
    assert (names(decision), leaving(decision)) == (["a000", "a001"], [])
    assert decision.confirm
    agreed = decide(POLICY, replace(admitted("a000", "a001"), confirmed=decision.confirm), members, NOW)
    assert (leaving(agreed), agreed.admission) == (["a000", "a001"], 6)


def test_the_counter_goes_on_from_what_is_there() -> None:
    """A hub that lost its records counts on from the highest entry it finds."""
    members = [replace(WELL, admission=41), replace(THERE, name="b", admission=57)]
    assert decide(POLICY, replace(FACTS, admission=0), members, NOW).admission == 58
    assert decide(POLICY, replace(FACTS, admission=0), [members[1]], NOW).admission == 57


@pytest.mark.parametrize(
    ("facts", "members", "good"),
    [
        pytest.param(FACTS, fleet(THERE, 3), NEW, id="all there"),
        pytest.param(FACTS, [*fleet(THERE, 3), WELL], OLD, id="one pending"),
        pytest.param(FACTS, [THERE, replace(WELL, name="b", reachable=False)], NEW, id="one unreachable"),
        pytest.param(FACTS, [replace(WELL, reachable=False)], OLD, id="none reachable"),
        pytest.param(FACTS, [THERE, replace(THERE, name="b", state="failed")], OLD, id="one failed"),
        pytest.param(replace(FACTS, course=Course()), fleet(WELL, 3), OLD, id="imported, shared"),
        pytest.param(
            replace(FACTS, course=Course()), [WELL, replace(WELL, name="b", entry="t1:x")], "", id="not shared"
        ),
        pytest.param(
            replace(FACTS, course=Course()), [WELL, replace(WELL, name="b", entry=None)], "", id="not all have it"
        ),
        pytest.param(replace(FACTS, course=Course()), [replace(THERE, state="failed")], "", id="shared, failed"),
    ],
)
def test_last_good_is_what_all_reached(facts: Facts, members: list[Member], good: str) -> None:
    """The target is good once all that can be are at it; of a fleet found at work, what all of it runs is."""
    assert decide(POLICY, facts, members, NOW).course.last_good == good


def test_the_summary_counts_each_once() -> None:
    """Every cluster is in one state, and those that are left are counted apart."""
    members = [
        *fleet(THERE, 2, "a"),
        *fleet(replace(THERE, state="failed"), 1, "b"),
        *fleet(replace(WELL, reachable=False), 3, "c"),
        *fleet(replace(WELL, mode="Frozen"), 1, "d"),
        *fleet(WELL, 4, "e"),
        *fleet(LEAVING, 1, "f"),
    ]
    summary = decide(Rollout(max_concurrent=1, max_failures=1), FACTS, members, NOW).summary
    assert (summary.total, summary.succeeded, summary.failed, summary.unreachable) == (11, 2, 1, 3)
    assert (summary.held, summary.updating, summary.pending, summary.leaving) == (1, 1, 3, 1)
    assert summary.ready == "2/11"


@pytest.mark.parametrize(
    ("members", "phase"),
    [
        pytest.param([], "Pending", id="no clusters"),
        pytest.param(fleet(THERE, 2), "Succeeded", id="all there"),
        pytest.param([THERE, replace(WELL, name="b", reachable=False)], "Succeeded", id="all there that can be"),
        pytest.param([replace(WELL, reachable=False)], "Waiting", id="none can"),
        pytest.param([replace(THERE, state="updating")], "Progressing", id="one is at it again"),
    ],
)
def test_the_phase_is_one_word(members: list[Member], phase: str) -> None:
    """What it is when nothing is left to do."""
    assert decide(POLICY, FACTS, members, NOW).phase == phase


def test_who_cant_turn_round_now_gets_where_it_was_going() -> None:
    """A cluster on its way that is cordoned when a newer target comes keeps its place, and its own target."""
    facts = replace(admitted("a", target="t1:between"), previous="t1:between")
    decision = decide(POLICY, facts, [replace(WELL, mode="Cordoned")], NOW)
    assert decision.admitted == facts.admitted
