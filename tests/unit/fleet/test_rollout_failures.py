"""What becomes of a target that fails, and of what people then tell it to do."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from starling.api.v1alpha1 import Admitted, Rollout, RolloutFailure
from starling.fleet import Course, Facts, Member, decide, superseded
from tests.unit.fleet.fleets import (
    AWAY,
    CANARY,
    EU,
    FACTS,
    FAILED,
    MINUTE,
    NEW,
    NOW,
    OLD,
    POLICY,
    THERE,
    WELL,
    admitted,
    at,
    fleet,
    names,
    recorded,
    staged,
    told,
    ways,
)

BACK = Rollout(max_concurrent=2, timeout="10m", on_failure="Rollback")
FAILING = [*fleet(FAILED, 1, "f"), *fleet(THERE, 4, "t"), *fleet(WELL, 5, "w")]
STUCK = replace(THERE, state="updating")


def failed(facts: Facts = FACTS, **fields: Any) -> Facts:
    """Facts of a target that has failed."""
    return replace(facts, course=replace(facts.course, failed_target=NEW, **fields))


@pytest.mark.parametrize(
    ("most", "canaries", "others", "stops"),
    [
        pytest.param(1, 1, 0, False, id="one may"),
        pytest.param(1, 2, 0, True, id="two may not"),
        pytest.param(1, 1, 1, False, id="one in each stage"),
        pytest.param("25%", 1, 0, False, id="a quarter of four"),
        pytest.param("24%", 1, 0, True, id="rounded down"),
        pytest.param("10%", 1, 0, True, id="a tenth of all is no tenth of the stage"),
        pytest.param("25%", 0, 3, True, id="more than a quarter of another stage"),
    ],
)
def test_failures_count_by_stage(most: int | str, canaries: int, others: int, *, stops: bool) -> None:
    """More than may fail of any one stage stop the target, and of no other do they count."""
    members = [
        *fleet(FAILED, canaries, "c", CANARY),
        *fleet(THERE, 4 - canaries, "d", CANARY),
        *fleet(FAILED, others, "f"),
        *fleet(WELL, 10 - others, "w"),
    ]
    decision = decide(staged(max_failures=most), at("rest"), members, NOW)
    assert (decision.phase == "Failed", not decision.admitted) == (stops, stops)
    assert decision.course.failed_target == (NEW if stops else "")


def test_a_pause_is_for_good() -> None:
    """Nobody new moves though all are well again; who is on its way gets there, and the message says the way out."""
    facts = admitted("w000")
    stopped = decide(POLICY, facts, FAILING, NOW)
    assert (names(stopped), stopped.phase, stopped.course.rollback_to) == (["w000"], "Failed", "")
    assert "1 failed (f000)" in stopped.message
    assert "more than 0 of a stage failed; starling rollout retry" in stopped.message
    recovered = [*fleet(THERE, 1, "f"), *FAILING[1:]]
    later = decide(POLICY, recorded(facts, stopped), recovered, NOW + MINUTE)
    assert (names(later), later.phase) == (["w000"], "Failed")
    newer = replace(recorded(facts, stopped), target="t1:newer", admitted=())
    assert (len(decide(POLICY, newer, recovered, NOW).admitted), newer.retargeted) == (2, True)


def test_touched_clusters_return() -> None:
    """With Rollback they go back to the last good target, as many at once as may; who is on its way turns round."""
    facts = admitted("t000")
    members = [*fleet(FAILED, 1, "f"), *fleet(STUCK, 1, "t"), *fleet(THERE, 4, "u"), *fleet(WELL, 5, "w")]
    decision = decide(BACK, facts, members, NOW)
    assert decision.course.rollback_to == OLD
    assert ways(decision) == {"t000": OLD, "f000": OLD}
    assert (decision.phase, decision.summary.succeeded) == ("RollingBack", 5)
    assert "5 of 11 clusters are back at the last good target" in decision.message
    assert "the newest target failed on f000; starling rollout retry" in decision.message
    done = decide(BACK, failed(rollback_to=OLD), fleet(WELL, 3), NOW)
    assert (names(done), done.phase, done.course.ended) == ([], "RolledBack", "")
    assert decide(BACK, failed(rollback_to=OLD), [WELL, replace(AWAY, name="b", entry=NEW)], NOW).phase == "RolledBack"


def test_a_return_keeps_the_bound_of_each_stage() -> None:
    """All stages return at once, and each within its own bound."""
    policy = staged(canary={"max_concurrent": 1}, on_failure="Rollback")
    members = [*fleet(FAILED, 3, "c", CANARY), *fleet(THERE, 3, "e", EU)]
    assert ways(decide(policy, failed(rollback_to=OLD), members, NOW)) == {"c000": OLD, "e000": OLD, "e001": OLD}


def test_who_fails_to_return_holds_up_nobody() -> None:
    """A cluster that takes too long to get back has failed there, too, and the next returns."""
    facts = admitted("a", minutes=11, target=OLD, facts=failed(rollback_to=OLD))
    decision = decide(
        Rollout(max_concurrent=1), facts, [replace(WELL, state="updating"), replace(THERE, name="b")], NOW
    )
    assert ways(decision) == {"a": OLD, "b": OLD}
    assert (decision.phase, decision.summary.failed) == ("RollingBack", 1)


@pytest.mark.parametrize(
    "facts",
    [replace(FACTS, course=Course()), replace(FACTS, forgotten=frozenset({OLD})), at("", last_good=NEW)],
    ids=["none", "forgotten", "the same"],
)
def test_without_a_last_good_target_rollback_is_a_pause(facts: Facts) -> None:
    """It says so."""
    decision = decide(BACK, facts, FAILING, NOW)
    assert (decision.phase, decision.course.rollback_to, names(decision)) == ("Failed", "", [])
    assert "and there is no last good one to return to; starling rollout retry" in decision.message


def test_what_is_not_known_any_more_is_not_returned_to() -> None:
    """Nobody could: so it stops, and says so; unless there is a last good one that is known."""
    facts = told(at("rest"), "undo", to=OLD)
    undone = replace(recorded(facts, decide(POLICY, facts, fleet(THERE, 3), NOW)), admitted=())
    lost = replace(undone, forgotten=frozenset({OLD}))
    decision = decide(BACK, lost, fleet(THERE, 3), NOW)
    assert (decision.phase, decision.course.rollback_to, names(decision)) == ("Failed", "", [])
    assert "was undone by ann, and what to return to isn't known any more; starling rollout" in decision.message
    other = replace(lost, course=replace(lost.course, last_good="t1:good"))
    assert set(ways(decide(BACK, other, fleet(THERE, 2), NOW)).values()) == {"t1:good"}


def test_a_policy_that_turns_to_rollback_is_followed() -> None:
    """A target that was stopped is left, too, once its policy says so."""
    decision = decide(BACK, failed(), FAILING, NOW)
    assert (decision.course.rollback_to, decision.phase) == (OLD, "RollingBack")


def test_it_may_go_on_whatever_fails() -> None:
    """With Continue all get it, but it isn't good by that: it ends degraded."""
    policy = staged(on_failure="Continue")
    members = [*fleet(FAILED, 2, "c", CANARY), *fleet(WELL, 3, "w")]
    decision = decide(policy, at("canary"), members, NOW)
    assert (names(decision), decision.course.stage, decision.phase) == (["w000", "w001"], "rest", "Progressing")
    restless = [*fleet(FAILED, 2, "c", CANARY), *fleet(STUCK, 1, "d", CANARY), *fleet(WELL, 3, "w")]
    assert decide(policy, at("canary"), restless, NOW).course.stage == "canary"
    ended = decide(policy, at("rest"), [*fleet(FAILED, 2, "c", CANARY), *fleet(THERE, 3, "w")], NOW)
    assert (ended.phase, ended.course.ended, ended.course.last_good) == ("Degraded", NEW, OLD)


@pytest.mark.parametrize(
    ("others", "good"),
    [
        pytest.param(fleet(THERE, 2, "c"), NEW, id="all are well"),
        pytest.param(fleet(AWAY, 2, "c"), NEW, id="they are gone"),
        pytest.param(fleet(FAILED, 2, "c"), OLD, id="all have failed"),
        pytest.param(fleet(STUCK, 2, "c"), OLD, id="not yet"),
        pytest.param(fleet(WELL, 2, "c"), OLD, id="they are elsewhere"),
    ],
)
def test_what_came_round_is_good(others: list[Member], good: str) -> None:
    """A target that ended though more failed than may is good once they are well."""
    failure = RolloutFailure(target=NEW, at=NOW, clusters=("c000",))
    facts = at("", ended=NEW, failures=(failure,))
    course = decide(Rollout(on_failure="Continue"), facts, [*others, *fleet(THERE, 3, "w")], NOW).course
    assert (course.last_good, course.failures) == (good, () if good == NEW else (failure,))


def test_what_was_good_before_it_failed_is_made_good_again() -> None:
    """A version that is wanted once more may fail this time; once it is through, that is no longer held against it."""
    failure = RolloutFailure(target=NEW, at=NOW, clusters=("c000",))
    facts = at("rest", last_good=NEW, failures=(failure,))
    assert decide(POLICY, facts, fleet(THERE, 3), NOW).course.failures == ()


def test_a_few_may_fail() -> None:
    """A target that failed on no more than may is through, and good, and says who failed."""
    members = [*fleet(FAILED, 1, "f"), *fleet(THERE, 9)]
    decision = decide(Rollout(max_failures="10%"), at("rest"), members, NOW)
    assert (decision.phase, decision.course.ended, decision.course.last_good) == ("Degraded", NEW, NEW)
    assert "f000" in decision.message


def test_what_nobody_got_well_with_isnt_good() -> None:
    """Where as many as there are may fail, it comes to an end, and what was good before stays so."""
    policy = Rollout(max_failures=5, supersede="Finish")
    decision = decide(policy, at("rest", baking=MINUTE), fleet(FAILED, 3), NOW)
    assert (decision.course.ended, decision.course.last_good, decision.phase) == (NEW, OLD, "Degraded")
    assert superseded(policy, recorded(FACTS, decision), fleet(FAILED, 3))
    untried = decide(policy, at("rest"), fleet(AWAY, 3), NOW)
    assert (untried.course.ended, untried.phase) == ("", "Waiting")


def test_the_first_target_isnt_good_before_it_is_through() -> None:
    """Of a fleet found at work, what all run is good, but not the target that they are just being given."""
    policy = staged(canary={"bake": "10m"})
    facts = replace(FACTS, course=Course())
    canaries = fleet(THERE, 2, "c", CANARY)
    assert decide(policy, facts, canaries, NOW).course.last_good == ""
    assert decide(policy, replace(facts, course=Course()), fleet(WELL, 2, "c", CANARY), NOW).course.last_good == OLD


# What people tell it


def test_retry_has_it_tried_again() -> None:
    """What failed before counts no more: those clusters get the target anew, with a counter that tells so."""
    facts = told(failed(), "retry")
    decision = decide(POLICY, facts, FAILING, NOW)
    assert (decision.course.failed_target, decision.course.retried_at, decision.course.order) == ("", 5, "1")
    assert decision.admitted[0] == Admitted(cluster="f000", since=NOW, target=NEW, admission=6)
    assert (names(decision), decision.phase, decision.summary.failed) == (["f000", "w000"], "Progressing", 0)
    same = decide(POLICY, recorded(facts, decision), FAILING, NOW + MINUTE)
    assert same.admitted == decision.admitted


def test_after_a_retry_failure_takes_the_time_there_is() -> None:
    """What a cluster says may be from before, so that it has failed only once its time is up."""
    facts = admitted("f000", minutes=9, admission=6, facts=at("rest", retried_at=5))
    member = replace(FAILED, name="f000", admission=6)
    assert (names(waiting := decide(POLICY, facts, [member], NOW)), waiting.summary.failed) == (["f000"], 0)
    over = decide(POLICY, facts, [member], NOW + MINUTE)
    assert (over.phase, over.summary.failed) == ("Failed", 1)
    well = decide(POLICY, facts, [replace(THERE, name="f000", admission=6)], NOW)
    assert (names(well), well.phase) == ([], "Succeeded")
    again = told(recorded(facts, over), "retry", id="2")
    assert names(decide(POLICY, again, [member], NOW + MINUTE)) == ["f000"]


def test_retry_after_a_return_goes_through_all_stages() -> None:
    """Clusters are back at the last good target, and the first stage is first again."""
    facts = told(failed(at("rest"), rollback_to=OLD), "retry")
    members = [*fleet(WELL, 2, "c", CANARY), *fleet(WELL, 3, "w")]
    decision = decide(staged(on_failure="Rollback"), facts, members, NOW)
    assert (ways(decision), decision.course.rollback_to) == ({"c000": NEW, "c001": NEW}, "")


@pytest.mark.parametrize(
    ("canary", "unreachable", "stage"),
    [
        pytest.param(THERE, "Skip", "rest", id="they are well"),
        pytest.param(FAILED, "Skip", "canary", id="one isn't"),
        pytest.param(AWAY, "Skip", "rest", id="one is away"),
        pytest.param(AWAY, "Wait", "canary", id="one is away and waited for"),
        pytest.param(replace(THERE, reachable=False), "Wait", "rest", id="one is away, and was well"),
    ],
)
def test_retry_goes_on_where_something_is_to_be_done(canary: Member, unreachable: str, stage: str) -> None:
    """Stages that are well have baked, and don't again."""
    policy = staged(canary={"bake": "10m"}, unreachable=unreachable)
    members = [*fleet(canary, 1, "c", CANARY), *fleet(FAILED, 1, "f"), *fleet(WELL, 2, "w")]
    decision = decide(policy, told(failed(at("rest")), "retry"), members, NOW)
    assert decision.course.stage == stage
    assert ("f000" in names(decision)) == (stage == "rest")


def test_retry_while_baking_bakes_anew() -> None:
    """A cluster that degraded and has recovered must stay well for as long as the stage should bake."""
    policy = staged(canary={"bake": "10m"})
    members = [*fleet(THERE, 2, "c", CANARY), *fleet(WELL, 2, "w")]
    decision = decide(policy, told(failed(at("canary")), "retry"), members, NOW)
    assert (names(decision), decision.course.baking_since, decision.phase) == ([], NOW, "Baking")


@pytest.mark.parametrize(
    ("facts", "order"),
    [
        pytest.param(failed(), {"target": OLD}, id="another target"),
        pytest.param(failed(replace(FACTS, course=Course(order="1"))), {}, id="carried out before"),
        pytest.param(failed(), {"verb": "approve", "stage": "rest"}, id="another order"),
    ],
)
def test_nothing_else_has_it_tried_again(facts: Facts, order: dict[str, str]) -> None:
    """A failed target stays so."""
    decision = decide(POLICY, told(facts, **{"verb": "retry", **order}), FAILING, NOW)
    assert (names(decision), decision.phase, decision.course.order) == ([], "Failed", "1")


def test_only_what_failed_is_tried_again() -> None:
    """To retry a rollout that is at work changes nothing."""
    facts = at("rest")
    decision = decide(POLICY, told(facts, "retry"), fleet(WELL, 3), NOW)
    assert (decision.course.retried_at, decision.course.stage_started) == (0, facts.course.stage_started)


@pytest.mark.parametrize(
    "facts", [at("rest"), at("", ended=NEW, last_good=NEW), failed()], ids=["at work", "through", "failed"]
)
def test_undo_takes_all_back(facts: Facts) -> None:
    """Clusters return to what was named, within bounds, whatever the policy, and stay until there is a new target."""
    facts = told(facts, "undo", to=OLD)
    decision = decide(POLICY, facts, fleet(THERE, 3), NOW)
    assert ways(decision) == {"a000": OLD, "a001": OLD}
    assert (decision.phase, decision.course.last_good, decision.course.ended) == ("RollingBack", OLD, "")
    after = replace(recorded(facts, decision), admitted=())
    back = decide(POLICY, after, fleet(WELL, 3), NOW)
    assert (names(back), back.phase) == ([], "RolledBack")
    newer = decide(POLICY, replace(after, target="t1:newer"), fleet(WELL, 3), NOW)
    assert set(ways(newer).values()) == {"t1:newer"}


def test_a_failure_is_remembered_until_it_is_made_good() -> None:
    """In which stage and where; also when there is a newer target, until this one goes through after all."""
    policy = staged(on_failure="Rollback")
    members = [*fleet(FAILED, 7, "c", CANARY), *fleet(WELL, 3, "w")]
    stopped = decide(policy, at("canary"), members, NOW)
    [failure] = stopped.course.failures
    assert (failure.target, failure.stage, failure.at, failure.by) == (NEW, "canary", NOW, "")
    assert failure.clusters == tuple(f"c{number:03}" for number in range(5))
    assert "failed in stage canary on c000, c001, c002 and 2 more; starling rollout retry" in stopped.message
    explained = replace(stopped.course, failures=(msgspec.structs.replace(failure, message="no such image"),))
    later = decide(policy, replace(recorded(at("canary"), stopped), course=explained), members, NOW + MINUTE)
    assert "and 2 more: no such image; starling rollout retry" in later.message
    newer = replace(recorded(at("canary"), stopped), target="t1:newer", admitted=())
    assert decide(policy, newer, fleet(WELL, 3), NOW).course.failures == (failure,)
    through = decide(POLICY, at("rest", failures=(failure,)), fleet(THERE, 3), NOW)
    assert (through.course.last_good, through.course.failures) == (NEW, ())


def test_what_failed_is_not_good_because_someone_returns_to_it() -> None:
    """An undo says who it was; to a target that failed it is obeyed, and what was good last stays so."""
    bad = RolloutFailure(target=OLD, at=NOW, stage="canary")
    facts = told(at("", ended=NEW, last_good="t1:good", failures=(bad,)), "undo", to=OLD)
    decision = decide(POLICY, facts, fleet(THERE, 3), NOW)
    assert set(ways(decision).values()) == {OLD}
    assert decision.course.last_good == "t1:good"
    assert [(each.target, each.by) for each in decision.course.failures] == [(OLD, ""), (NEW, "ann")]
    assert "clusters are at the target they return to" in decision.message
    assert "the newest target was undone by ann; starling rollout retry" in decision.message
    undone = replace(facts, course=replace(facts.course, last_good=NEW))
    assert decide(POLICY, undone, fleet(THERE, 3), NOW).course.last_good == ""


@pytest.mark.parametrize(
    "order",
    [{"to": NEW}, {"to": ""}, {"to": "t1:lost"}, {"to": OLD, "target": "t1:other"}],
    ids=["to itself", "to nothing", "to what nobody knows", "of another target"],
)
def test_undo_needs_somewhere_to_go(order: dict[str, str]) -> None:
    """Otherwise it is only noted."""
    facts = replace(told(at("", ended=NEW), "undo", **order), forgotten=frozenset({"t1:lost"}))
    decision = decide(POLICY, facts, fleet(THERE, 3), NOW)
    assert (names(decision), decision.phase, decision.course.order) == ([], "Succeeded", "1")


def test_what_was_undone_can_be_tried_again() -> None:
    """It goes through its stages anew."""
    facts = told(failed(at("", last_good=OLD), rollback_to=OLD), "retry", id="2")
    assert set(ways(decide(POLICY, facts, fleet(WELL, 3), NOW)).values()) == {NEW}


def test_many_that_take_too_long_hold_up_nobody() -> None:
    """A record holds 200: where more may fail, those whose time was up first are forgotten for those to come."""
    stuck = fleet(replace(THERE, state="updating"), 200, "s")
    facts = admitted(*(each.name for each in stuck), minutes=11)
    decision = decide(Rollout(max_concurrent=5, on_failure="Continue"), facts, [*stuck, *fleet(WELL, 9, "w")], NOW)
    assert [name for name in names(decision) if name.startswith("w")] == [f"w00{each}" for each in range(5)]
    assert len(decision.admitted) == 200
