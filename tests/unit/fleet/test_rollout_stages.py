"""A target goes through the stages one after the other, each when it may."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from starling.api.v1alpha1 import RolloutGate, RolloutWindow, StageApproval
from starling.fleet import Facts, Member, decide
from starling.fleet.stages import Staged
from tests.unit.fleet.fleets import (
    AWAY,
    BOTH,
    CANARY,
    EU,
    FACTS,
    FAILED,
    MINUTE,
    NEW,
    NOW,
    OLD,
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

GATE = RolloutGate(url="https://gate.test/ask")
MANUAL = {"approval": "Manual"}
CANARIES = fleet(THERE, 2, "c", CANARY)
OTHERS = [*fleet(WELL, 3, "e", EU), *fleet(WELL, 3, "r")]


def test_a_cluster_is_in_the_first_stage_that_selects_it() -> None:
    """One in several belongs to the first, and one in none to the rest."""
    members = [replace(WELL, name=str(n), labels=labels) for n, labels in enumerate((CANARY, BOTH, EU, {}))]
    found = Staged(staged(), members)
    assert [found.of(member.name).name for member in members] == ["canary", "canary", "eu", "rest"]
    assert [stage.size for stage in found.stages] == [2, 1, 1]


def test_the_first_stage_is_first() -> None:
    """Nobody moves but those of the first stage that has anybody."""
    members = [*fleet(WELL, 1, "z", BOTH), *OTHERS]
    assert names(decide(staged(), FACTS, members, NOW)) == ["z000"]
    decision = decide(staged(), FACTS, OTHERS, NOW)
    assert (names(decision), decision.course.stage) == (["e000", "e001"], "eu")
    assert decision.course.stage_started == NOW
    assert "stage eu" in decision.message


@pytest.mark.parametrize(
    ("most", "in_all", "number"),
    [(None, 3, 3), (1, 3, 1), ("25%", 3, 2), ("5%", 9, 1), ("100%", 1, 8)],
    ids=["as the policy says", "number", "share of the stage", "at least one", "all of it"],
)
def test_a_stage_has_a_bound_of_its_own(most: int | str | None, in_all: int, number: int) -> None:
    """It is what the stage says, of the clusters in it, and else what the policy says."""
    members = [*fleet(WELL, 8, "c", CANARY), *fleet(WELL, 40, "r")]
    decision = decide(staged(canary={"max_concurrent": most}, max_concurrent=in_all), FACTS, members, NOW)
    assert len(decision.admitted) == number


def test_each_stage_counts_its_own() -> None:
    """A place that is held in one stage takes none in another, and one too many admits nobody."""
    facts = admitted("c000", "r000", facts=at("canary"))
    members = [*fleet(WELL, 3, "c", CANARY), *fleet(WELL, 3, "r")]
    assert names(decide(staged(), facts, members, NOW)) == ["c000", "c001", "r000"]
    assert names(decide(staged(canary={"max_concurrent": 1}), facts, members, NOW)) == ["c000", "r000"]
    moved = [replace(member, labels=CANARY) for member in members]
    assert names(decide(staged(canary={"max_concurrent": 1}), facts, moved, NOW)) == ["c000", "r000"]


def test_all_stages_share_the_record() -> None:
    """More than it holds are never admitted, though each stage has room."""
    members = [*fleet(WELL, 150, "c", CANARY), *fleet(WELL, 150, "r")]
    decision = decide(staged(max_concurrent="100%"), at("rest"), members, NOW)
    assert len(decision.admitted) == 200


@pytest.mark.parametrize(
    ("member", "stage"),
    [
        pytest.param(THERE, "eu", id="there"),
        pytest.param(WELL, "canary", id="pending"),
        pytest.param(replace(THERE, state="updating"), "canary", id="at it again"),
        pytest.param(AWAY, "eu", id="unreachable"),
        pytest.param(replace(WELL, mode="Cordoned"), "eu", id="cordoned"),
        pytest.param(replace(WELL, mode="Frozen"), "eu", id="frozen"),
        pytest.param(replace(WELL, adopted=False), "canary", id="to be adopted soon"),
        pytest.param(replace(WELL, selected=False, admission=0), "eu", id="not selected"),
    ],
)
def test_a_stage_is_done_when_all_are_there_that_can_be(member: Member, stage: str) -> None:
    """The next one begins then, and not before."""
    members = [*CANARIES, replace(member, name="c9", labels=CANARY), *OTHERS]
    decision = decide(staged(), at("canary"), members, NOW)
    assert decision.course.stage == stage
    assert ("e000" in names(decision)) == (stage == "eu")
    assert decision.course.ended == ""


def test_a_stage_waits_for_who_is_on_its_way() -> None:
    """What a cluster said before it was admitted doesn't end its stage."""
    decision = decide(staged(), admitted("c000", admission=5, facts=at("canary")), [*CANARIES, *OTHERS], NOW)
    assert (names(decision), decision.course.stage) == (["c000"], "canary")


def test_the_last_stage_ends_it() -> None:
    """The target is good once it has been through all of them."""
    members = [*CANARIES, *fleet(THERE, 2, "e", EU), *fleet(THERE, 2, "r")]
    decision = decide(staged(), at("rest"), members, NOW)
    assert (decision.course.ended, decision.course.last_good, decision.course.stage) == (NEW, NEW, "")
    assert decision.phase == "Succeeded"


BAKED = staged(canary={"bake": "10m"})


def test_a_stage_bakes_from_its_last_success() -> None:
    """It begins when the last is there, lasts as long as it should, and then the next stage starts."""
    one = decide(BAKED, admitted("c001", facts=at("canary")), [CANARIES[0], *fleet(WELL, 2, "c", CANARY)[1:]], NOW)
    assert one.course.baking_since is None
    facts = admitted("c001", facts=at("canary"))
    begun = decide(BAKED, facts, [*CANARIES, *OTHERS], NOW)
    assert (begun.course.baking_since, begun.phase, begun.recheck_after) == (NOW, "Baking", 600)
    assert "stage canary bakes until 2026-01-01 00:10:00 UTC" in begun.message
    facts = recorded(facts, begun)
    later = decide(BAKED, facts, [*CANARIES, *OTHERS], NOW + timedelta(seconds=599))
    assert (names(later), later.course.baking_since, later.recheck_after) == ([], NOW, 1)
    over = decide(BAKED, facts, [*CANARIES, *OTHERS], NOW + timedelta(seconds=600))
    assert (names(over), over.course.stage, over.course.baking_since) == (["e000", "e001"], "eu", None)


def test_nothing_bakes_while_someone_has_yet_to_begin() -> None:
    """One whose time is up before its entry was written gets it again, and the bake is for it, too."""
    waits = [CANARIES[0], *fleet(WELL, 2, "c", CANARY)[1:], *OTHERS]
    decision = decide(BAKED, admitted("c001", minutes=60, facts=at("canary")), waits, NOW)
    assert (names(decision), decision.course.baking_since) == (["c001"], None)
    assert decision.admitted[0].since == NOW


def test_it_bakes_again_for_who_comes_later() -> None:
    """Someone new in the stage moves first, and the time begins again after that."""
    facts = at("canary", baking=9 * MINUTE)
    new = replace(WELL, name="c9", labels=CANARY)
    moves = decide(BAKED, facts, [*CANARIES, new, *OTHERS], NOW)
    assert (names(moves), moves.course.baking_since) == (["c9"], None)
    facts = recorded(facts, moves)
    arrived = replace(THERE, name="c9", labels=CANARY, admission=6)
    again = decide(BAKED, facts, [*CANARIES, arrived, *OTHERS], NOW + 2 * MINUTE)
    assert (names(again), again.course.baking_since) == ([], NOW + 2 * MINUTE)


def test_who_was_there_already_bakes_too() -> None:
    """A target that comes back before it was through has its time to bake, though nobody has to move."""
    facts = replace(FACTS, previous="t1:between")
    decision = decide(BAKED, facts, [*CANARIES, *OTHERS], NOW)
    assert (names(decision), decision.course.baking_since, decision.phase) == ([], NOW, "Baking")
    restless = [replace(member, state="updating") for member in CANARIES]
    decision = decide(staged(canary={"bake": "10m"}, max_failures=2), facts, [*restless, *OTHERS], NOW)
    assert (names(decision), decision.course.baking_since) == ([], NOW)


def test_to_degrade_while_baking_is_a_failure() -> None:
    """It stops the target for good, also when the cluster recovers."""
    facts = at("canary", baking=MINUTE)
    decision = decide(BAKED, facts, [CANARIES[0], *fleet(FAILED, 1, "d", CANARY), *OTHERS], NOW)
    assert (decision.phase, decision.course.failed_target, decision.course.baking_since) == ("Failed", NEW, None)
    recovered = decide(BAKED, recorded(facts, decision), [*CANARIES, *OTHERS], NOW + 20 * MINUTE)
    assert (names(recovered), recovered.phase) == ([], "Failed")


def test_it_goes_on_only_while_all_are_well() -> None:
    """One that is at it again when the time is over keeps the next stage waiting, and says so."""
    restless = replace(THERE, name="c9", labels=CANARY, state="updating")
    decision = decide(BAKED, at("canary", baking=11 * MINUTE), [*CANARIES, restless, *OTHERS], NOW)
    assert (names(decision), decision.phase, decision.recheck_after) == ([], "Baking", None)
    assert "waits for all to be well" in decision.message


def test_who_is_held_has_its_stage_wait_too() -> None:
    """It isn't through before the stage of cordoned clusters was approved, and doesn't say so."""
    held = fleet(replace(WELL, mode="Cordoned"), 2, "e", EU)
    waiting = decide(staged(eu=MANUAL), at("canary"), [*CANARIES, *held], NOW)
    assert (waiting.phase, waiting.course.ended) == ("Waiting", "")
    assert "2 held; stage eu waits for approval" in waiting.message


def test_a_stage_waits_for_approval() -> None:
    """It says how to approve it; once someone has, it starts, and who that was is recorded."""
    policy, members = staged(eu=MANUAL), [*CANARIES, *OTHERS]
    waiting = decide(policy, at("canary"), members, NOW)
    assert (names(waiting), waiting.phase, waiting.course.stage_started) == ([], "Waiting", None)
    assert "stage eu waits for approval: starling rollout approve" in waiting.message
    named = decide(policy, replace(at("canary"), called="syncgroup/web -n n"), members, NOW).message
    assert named.endswith("starling rollout approve syncgroup/web -n n")
    facts = told(recorded(at("canary"), waiting), "approve", stage="eu")
    decision = decide(policy, facts, members, NOW)
    assert names(decision) == ["e000", "e001"]
    assert decision.course.approvals == (StageApproval(stage="eu", by="ann", at=NOW),)
    assert decision.course.order == "1"
    after = decide(policy, recorded(facts, decision), members, NOW + MINUTE)
    assert after.course.approvals == decision.course.approvals


@pytest.mark.parametrize(
    "fields",
    [{"target": OLD, "stage": "eu"}, {"stage": "canary"}, {"stage": "unheard-of"}, {"stage": ""}],
    ids=["another target", "another stage", "no stage", "none said"],
)
def test_approval_is_for_one_stage_and_target(fields: dict[str, str]) -> None:
    """Any other starts nothing, but is noted, so that who gave it hears of it."""
    decision = decide(staged(eu=MANUAL), told(at("canary"), "approve", **fields), [*CANARIES, *OTHERS], NOW)
    assert (names(decision), decision.phase, decision.course.order) == ([], "Waiting", "1")


def test_a_new_target_needs_its_own_approval() -> None:
    """What was approved of the one before, and the order for it, count no more."""
    approved = (StageApproval(stage="eu", by="ann", at=NOW),)
    facts = replace(told(at("canary", approvals=approved), "approve", stage="eu", target=OLD), previous=OLD)
    decision = decide(staged(eu=MANUAL), facts, [*CANARIES, *OTHERS], NOW)
    assert (decision.course.approvals, names(decision), decision.phase) == ((), [], "Waiting")


def test_an_approval_is_counted_once() -> None:
    """An order that was carried out isn't again, and two for the same make one approval."""
    facts = told(at("eu", order="1"), "approve", stage="eu")
    assert decide(staged(eu=MANUAL), facts, OTHERS, NOW).course.approvals == ()
    approved = (StageApproval(stage="eu", by="ann", at=NOW - MINUTE),)
    facts = told(at("eu", approvals=approved), "approve", stage="eu", by="bob")
    assert decide(staged(eu=MANUAL), facts, OTHERS, NOW).course.approvals == approved


def test_a_gate_is_asked_when_nothing_else_is_in_the_way() -> None:
    """Then the decision names the stage; once the gate has let it pass, that is recorded and the stage starts."""
    members = [*CANARIES, *OTHERS]
    policy = staged(eu={"gate": GATE, **MANUAL})
    assert decide(policy, at("canary"), members, NOW).gate == ""
    facts = told(at("canary"), "approve", stage="eu")
    shut = staged(eu={"gate": GATE}, windows=(RolloutWindow(from_="09:00", until="10:00"),))
    assert decide(shut, facts, members, NOW).gate == ""
    asked = decide(policy, facts, members, NOW)
    assert (asked.gate, names(asked), asked.phase) == ("eu", [], "Waiting")
    assert "stage eu waits for its gate" in asked.message
    passed = decide(policy, replace(facts, passed=frozenset({"eu"})), members, NOW)
    assert (passed.gate, names(passed)) == ("", ["e000", "e001"])
    assert [(each.stage, each.at, each.gate) for each in passed.course.approvals][1:] == [("eu", NOW, True)]


@pytest.mark.parametrize("passed", ["canary", "unheard-of", ""])
def test_another_gate_opens_nothing(passed: str) -> None:
    """Nor does someone's approval open a gate, or a gate approve."""
    facts = replace(told(at("canary"), "approve", stage="eu"), passed=frozenset({passed}))
    decision = decide(staged(eu={"gate": GATE}), facts, [*CANARIES, *OTHERS], NOW)
    assert (decision.gate, names(decision)) == ("eu", [])
    first = decide(
        staged(canary={"gate": GATE}),
        replace(FACTS, passed=frozenset({"unheard-of"})),
        fleet(WELL, 1, "c", CANARY),
        NOW,
    )
    assert (first.gate, names(first)) == ("canary", [])
    manual = staged(eu={"gate": GATE, **MANUAL})
    assert not decide(manual, replace(at("canary"), passed=frozenset({"eu"})), [*CANARIES, *OTHERS], NOW).admitted


NEWCOMER = replace(WITHOUT, name="a")  # the first of its stage


@pytest.mark.parametrize(
    ("facts", "labels", "target"),
    [
        pytest.param(at("eu"), CANARY, NEW, id="its stage is done"),
        pytest.param(at("eu"), EU, OLD, id="its stage is at work"),
        pytest.param(at("eu"), {}, OLD, id="its stage is to come"),
        pytest.param(at("", ended=NEW, last_good=NEW), {}, NEW, id="all is done"),
        pytest.param(at("eu", failed_target=NEW), CANARY, OLD, id="it failed"),
        pytest.param(at("eu", last_good=""), {}, None, id="nothing was ever good"),
        pytest.param(replace(at("eu"), forgotten=frozenset({OLD})), {}, None, id="nobody knows what was good"),
    ],
)
def test_a_new_cluster_gets_what_is_good_in_its_stage(facts: Facts, labels: dict[str, str], target: str | None) -> None:
    """The target, if its stage is done, else the last good one, at once."""
    members = [replace(NEWCOMER, labels=labels), *CANARIES, *OTHERS]
    assert ways(decide(staged(), facts, members, NOW)).get("a") == target


def test_a_new_cluster_follows_in_its_stage() -> None:
    """It moves on from the last good target to the newest as others do."""
    facts = admitted("n", target=OLD, admission=6, facts=at("eu"))
    on_its_way = replace(WELL, name="n", labels=EU, admission=6, acknowledged=False)
    assert ways(decide(staged(), facts, [on_its_way, *CANARIES], NOW)) == {"n": OLD}
    arrived = replace(on_its_way, acknowledged=True)
    assert ways(decide(staged(), facts, [arrived, *CANARIES], NOW)) == {"n": NEW}


def test_a_stage_that_is_added_meanwhile_has_its_turn() -> None:
    """What is done is known by name: those of the new stage are waited for, and nobody else starts."""
    policy = staged(canary={"bake": "10m"})
    members = [*fleet(WELL, 1, "c", CANARY), *fleet(WELL, 2, "e", EU), *fleet(THERE, 2, "w")]
    facts = at("rest", stages_done=("eu",))
    decision = decide(policy, facts, members, NOW)
    assert (names(decision), decision.course.stage) == (["c000", "e000", "e001"], "canary")
    assert decision.course.stages_done == ("eu",)


@pytest.mark.parametrize("away", [{"reachable": False}, {"mode": "Frozen"}], ids=["unreachable", "frozen"])
def test_who_is_away_is_asked_for_too(away: dict[str, Any]) -> None:
    """A stage that needs approval isn't passed without, though nobody in it can take the target now."""
    policy = staged(eu={"approval": "Manual"})
    absent = [replace(each, **away) for each in fleet(WELL, 2, "e", EU)]
    members = [*fleet(THERE, 1, "c", CANARY), *absent, *fleet(WELL, 2, "w")]
    decision = decide(policy, at("eu", started=False), members, NOW)
    assert (names(decision), decision.course.stage, decision.phase) == ([], "eu", "Waiting")
    assert "stage eu waits for approval" in decision.message
    approved = at("eu", started=False, approvals=(StageApproval(stage="eu", by="ann", at=NOW),))
    assert names(decide(policy, approved, members, NOW)) == ["w000", "w001"]


def test_several_gates_may_have_answered() -> None:
    """What one of them said isn't forgotten for the other's sake, though neither is on record yet."""
    policy = staged(canary={"gate": GATE}, eu={"gate": GATE})
    facts = replace(FACTS, passed=frozenset({"canary", "eu"}))
    decision = decide(policy, facts, [*fleet(AWAY, 1, "c", CANARY), *fleet(WELL, 1, "e", EU)], NOW)
    assert {each.stage for each in decision.course.approvals} == {"canary", "eu"}
    assert (names(decision), decision.gate) == (["e000"], "")
