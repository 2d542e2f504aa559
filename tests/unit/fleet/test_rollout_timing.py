"""When clusters move: in windows, spread over a while, after those that are waited for, and for which target."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from starling.api.v1alpha1 import Rollout, RolloutWindow
from starling.fleet import Facts, Member, decide, superseded
from tests.unit.fleet.fleets import (
    AWAY,
    CANARY,
    FACTS,
    FAILED,
    MINUTE,
    NEW,
    NOW,
    OLD,
    POLICY,
    THERE,
    WELL,
    WITHOUT,
    admitted,
    at,
    fleet,
    names,
    recorded,
    staged,
    told,
    ways,
)

# NOW is a Thursday, 01:00 in Berlin.
SHUT = (RolloutWindow(days=("Mon-Fri",), from_="09:00", until="16:00", timezone="Europe/Berlin"),)
OPENS = datetime(2026, 1, 1, 8, tzinfo=NOW.tzinfo)
NIGHTLY = Rollout(max_concurrent=2, timeout="10m", windows=SHUT)


def test_nothing_starts_outside_of_windows() -> None:
    """It says when the next one opens, looks again then, and goes on."""
    facts = at("", started=False)
    decision = decide(NIGHTLY, facts, fleet(WELL, 3), NOW)
    assert (names(decision), decision.phase, decision.course.stage_started) == ([], "Waiting", None)
    assert "no window is open until 2026-01-01 08:00 UTC" in decision.message
    assert decision.recheck_after == 8 * 3600
    opened = decide(NIGHTLY, recorded(facts, decision), fleet(WELL, 3), OPENS)
    assert (names(opened), opened.course.stage_started) == (["a000", "a001"], OPENS)


def test_a_window_that_closes_stops_a_stage_at_work() -> None:
    """Those on their way finish, and nobody follows, be it in its turn, later, or by a retry."""
    decision = decide(NIGHTLY, admitted("a000", facts=at("rest")), fleet(WELL, 3), NOW)
    assert (names(decision), decision.phase) == (["a000"], "Progressing")
    assert "no window is open" in decision.message
    late = replace(WELL, name="c", labels=CANARY)
    policy = staged(windows=SHUT)
    assert names(decide(policy, at("rest"), [late], NOW)) == []
    ended = decide(NIGHTLY, at("", ended=NEW, last_good=NEW), [replace(THERE, name="b"), WELL], NOW)
    assert (names(ended), ended.phase) == ([], "Waiting")
    assert "no window is open" in ended.message
    again = told(at("rest", failed_target=NEW), "retry")
    assert names(decide(NIGHTLY, again, fleet(FAILED, 2), NOW)) == []


def test_those_at_work_keep_their_place_when_it_closes() -> None:
    """A cluster that was admitted in time, and whose entry wasn't made, still has all its time."""
    decision = decide(NIGHTLY, admitted("a", minutes=11, facts=at("rest")), [WELL], NOW)
    assert [(each.cluster, each.since) for each in decision.admitted] == [("a", NOW)]


@pytest.mark.parametrize(
    ("facts", "member", "target"),
    [
        pytest.param(at("rest"), WITHOUT, OLD, id="first installation"),
        pytest.param(at("", ended=NEW, last_good=NEW), WITHOUT, NEW, id="first installation of what is through"),
        pytest.param(at("rest", failed_target=NEW, rollback_to=OLD), THERE, OLD, id="return"),
        pytest.param(at("rest", last_good=""), WITHOUT, None, id="first installation of nothing good"),
    ],
)
def test_what_was_good_needs_no_window(facts: Facts, member: Member, target: str | None) -> None:
    """To return to it, and to give it to a new cluster, is no update."""
    assert ways(decide(NIGHTLY, facts, [member], NOW)).get("a") == target


def test_clusters_are_left_at_any_time() -> None:
    """What isn't to be there any more is no update either."""
    decision = decide(NIGHTLY, FACTS, [replace(WELL, selected=False), replace(THERE, name="b")], NOW)
    assert [each.leave for each in decision.admitted] == [True]


JITTERED = Rollout(max_concurrent="100%", jitter="10m")


def starts(facts: Facts, members: list[Member]) -> dict[str, datetime]:
    """When each is admitted, if someone looks every ten seconds."""
    found: dict[str, datetime] = {}
    for number in range(62):
        now = NOW + timedelta(seconds=10 * number)
        decision = decide(JITTERED, facts, members, now)
        found |= {name: now for name in names(decision) if name not in found}
        facts = recorded(facts, decision)
    return found


def test_jitter_spreads_the_start() -> None:
    """All have started once it is over, about as many in each part of it, and each when it would again."""
    members = fleet(WELL, 200)
    found = starts(replace(FACTS, course=replace(FACTS.course, stage="")), members)
    assert len(found) == 200
    parts = [
        sum(NOW + n * 2 * MINUTE <= when < NOW + (n + 1) * 2 * MINUTE for when in found.values()) for n in range(5)
    ]
    assert all(20 <= number <= 60 for number in parts), parts
    assert found == starts(replace(FACTS, course=replace(FACTS.course, stage="")), members[::-1])


def test_jitter_says_who_is_next() -> None:
    """The next look is when the next cluster starts, and the message has the time."""
    decision = decide(JITTERED, FACTS, fleet(WELL, 3), NOW)
    assert (names(decision), decision.phase) == ([], "Progressing")
    assert decision.recheck_after is not None
    facts, then = recorded(FACTS, decision), NOW + timedelta(seconds=decision.recheck_after)
    assert f"the next starts at {then:%H:%M:%S} UTC" in decision.message
    assert not decide(JITTERED, facts, fleet(WELL, 3), then - timedelta(seconds=1)).admitted
    assert len(decide(JITTERED, facts, fleet(WELL, 3), then).admitted) == 1


@pytest.mark.parametrize("target", [NEW, "t1:newer"])
def test_jitter_is_another_for_each_target(target: str) -> None:
    """No cluster is always the first."""
    facts = replace(FACTS, target=target, previous=target)
    first = min(starts(facts, fleet(WELL, 40)).items(), key=lambda item: item[1])[0]
    others = replace(FACTS, target="t1:other", previous="t1:other")
    assert first != min(starts(others, fleet(WELL, 40)).items(), key=lambda item: item[1])[0]


@pytest.mark.parametrize(
    ("supersede", "facts", "members", "may"),
    [
        pytest.param("Now", admitted("a"), [WELL], True, id="now"),
        pytest.param("Finish", admitted("a"), [WELL], False, id="one is on its way"),
        pytest.param("Finish", FACTS, [THERE, replace(WELL, name="b")], False, id="one is there"),
        pytest.param("Finish", FACTS, fleet(WELL, 2), True, id="nobody has it yet"),
        pytest.param("Finish", FACTS, [replace(THERE, selected=False)], True, id="only who is left has it"),
        pytest.param("Finish", at("", ended=NEW), [THERE], True, id="it is through"),
        pytest.param("Finish", at("rest", failed_target=NEW), [THERE], True, id="it failed"),
        pytest.param("Finish", replace(FACTS, target=""), [WELL], True, id="there was none"),
    ],
)
def test_a_newer_target_waits_if_it_should(supersede: str, facts: Facts, members: list[Member], *, may: bool) -> None:
    """With Finish it does until the one that clusters have is through, or has failed."""
    policy = Rollout(supersede="Finish" if supersede == "Finish" else "Now")
    assert superseded(policy, facts, members) is may


def test_a_skipped_target_starts_nowhere() -> None:
    """Who was on its way to it gets there or turns to the newer one, and nobody else is sent to it."""
    before = replace(at("rest"), previous="t1:skipped")
    facts = admitted("c000", "r000", target="t1:skipped", admission=5, facts=before)
    members = [*fleet(WELL, 2, "c", CANARY), *fleet(WELL, 3, "r")]
    decision = decide(staged(), facts, members, NOW)
    assert ways(decision) == {"c000": NEW, "c001": NEW, "r000": "t1:skipped"}
    assert decision.course.stage == "canary"
    late = decide(staged(), recorded(facts, decision), members, NOW + 11 * MINUTE)
    assert [each.restore for each in late.admitted if each.cluster == "r000"] == [True]


def test_who_is_on_its_way_to_the_target_stays_so() -> None:
    """An old view, in which a cluster has nothing yet, doesn't send it to the last good target instead."""
    facts = admitted("a", admission=5, facts=at("rest"))
    assert decide(POLICY, facts, [WITHOUT], NOW).admitted == facts.admitted


def test_a_target_that_was_through_goes_everywhere_at_once() -> None:
    """One that is wanted again, since the newer one is no good, needs no stages, only bounds."""
    facts = replace(at("canary", ended=NEW, last_good=NEW), previous="t1:bad")
    members = [*fleet(WELL, 3, "c", CANARY), *fleet(WELL, 3, "r")]
    assert names(decide(staged(), facts, members, NOW)) == ["c000", "c001", "r000", "r001"]


WAITING = staged(unreachable="Wait")


def test_a_stage_can_wait_for_who_is_away() -> None:
    """The others of the stage move, and the next stage doesn't start; nor does it bake meanwhile."""
    away, others = replace(AWAY, name="c9", labels=CANARY), fleet(WELL, 2, "r")
    facts = at("canary")
    decision = decide(WAITING, facts, [*fleet(WELL, 1, "c", CANARY), away, *others], NOW)
    assert names(decision) == ["c000"]
    there = [*fleet(THERE, 1, "c", CANARY), away, *others]
    waiting = decide(WAITING, facts, there, NOW)
    assert (names(waiting), waiting.course.stage, waiting.course.baking_since) == ([], "canary", None)
    assert names(decide(staged(), facts, there, NOW)) == ["r000", "r001"]
    only = decide(WAITING, FACTS, [away, *others], NOW)
    assert (names(only), only.course.stage, only.course.stage_started) == ([], "canary", None)


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(replace(THERE, reachable=False), id="there"),
        pytest.param(replace(WELL, mode="Cordoned"), id="cordoned"),
        pytest.param(replace(WELL, mode="Frozen"), id="frozen"),
        pytest.param(replace(AWAY, selected=False, admission=0), id="not selected"),
    ],
)
def test_it_waits_for_nobody_else(member: Member) -> None:
    """Who is there was there, whoever is held is held by people."""
    members = [*fleet(THERE, 1, "c", CANARY), replace(member, name="c9", labels=CANARY), *fleet(WELL, 2, "r")]
    assert names(decide(WAITING, at("canary"), members, NOW)) == ["r000", "r001"]


@pytest.mark.parametrize(
    ("policy", "facts", "says"),
    [
        (POLICY, replace(FACTS, suspended=True), "; suspended"),
        (Rollout(paused=True), FACTS, "; paused by its policy"),
        (POLICY, replace(FACTS, target="", previous=""), "; no target yet"),
        (staged(), FACTS, "; stage rest"),
        (POLICY, FACTS, "2 updating, 1 pending"),
    ],
    ids=["suspended", "paused", "no target", "stage", "at work"],
)
def test_the_message_says_why_it_waits(policy: Rollout, facts: Facts, says: str) -> None:
    """In one line, after the numbers."""
    message = decide(policy, facts, fleet(WELL, 3), NOW).message
    assert message.startswith("0 of 3 clusters are at the target")
    assert message.endswith(says)
    assert "\n" not in message
