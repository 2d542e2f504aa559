"""`starling rollout approve|retry|undo` refuses what there is nothing to do for, and says the way out."""

from typing import Any

import pytest
from msgspec.structs import replace

from starling.api.orders import Order
from starling.api.v1alpha1 import Rollout, RolloutFailure, StageApproval
from starling.cli.orders import approval, is_obeyed, retrial, undoing, waiting_stage
from starling.errors import InputError
from tests.unit.cli.fleets import NEW, OLD
from tests.unit.cli.rollouts import HISTORY, NOW, POLICY, T1, T2, WEB, rolled

BY_ALICE = StageApproval(stage="eu", by="alice", at=NOW)
BY_GATE = StageApproval(stage="eu", by="https://gate.example", at=NOW, gate=True)


@pytest.mark.parametrize(
    ("said", "stage"),
    [
        ({"stage": "eu", "phase": "Waiting"}, "eu"),
        ({"stage": "eu", "phase": "Waiting", "approvals": (BY_GATE,)}, "eu"),
        ({"stage": "eu", "phase": "Suspended"}, "eu"),
        ({"stage": "eu", "approvals": (BY_ALICE,)}, ""),
        ({"stage": "eu", "stage_started": NOW}, ""),
        ({"stage": "canary"}, ""),
        ({"stage": "rest"}, ""),
        ({"stage": "eu", "failed_target": T2}, ""),
        ({"stage": "", "ended": T2}, ""),
        ({"stage": "eu", "target": ""}, ""),
    ],
    ids=[
        "its turn",
        "its gate passed",
        "paused",
        "approved",
        "started",
        "automatic",
        "rest",
        "failed",
        "ended",
        "none",
    ],
)
def test_the_stage_that_waits(said: dict[str, Any], stage: str) -> None:
    """One waits whose approval is Manual, whose turn it is, and of which nobody has said yes."""
    assert waiting_stage(rolled(**said).status, POLICY) == stage


@pytest.mark.parametrize("stage", ["", "eu"])
def test_approving_what_waits(stage: str) -> None:
    """The order is for the target at hand, and for the stage that waits."""
    order = approval(WEB, rolled(stage="eu", phase="Waiting"), POLICY, stage)
    assert order == Order(id="", verb="approve", target=T2, stage="eu")


def test_approving_before_its_turn() -> None:
    """A stage can be approved by its name while another has its turn."""
    assert approval(WEB, rolled(stage="canary"), POLICY, "eu").stage == "eu"


@pytest.mark.parametrize(
    ("said", "policy", "stage", "message", "hint"),
    [
        ({"stage": "canary"}, POLICY, "", "nothing of module n/web waits for approval", "by name: eu"),
        ({"stage": "rest"}, Rollout(), "", "nothing of module n/web waits for approval", "rollout status web -n n"),
        ({"ended": T2, "phase": "Succeeded"}, POLICY, "eu", "it is Succeeded", "rollout status web"),
        ({"failed_target": T2, "phase": "Failed"}, POLICY, "eu", "it is Failed", "rollout status web"),
        ({"stage": "canary"}, POLICY, "canary", "has no stage canary that is to be approved", "those that are: eu"),
        ({"stage": "canary"}, Rollout(), "eu", "has no stage eu", "has none"),
        ({"stage": "eu", "approvals": (BY_ALICE,)}, POLICY, "eu", "approved already, by alice", "rollout status web"),
    ],
    ids=["none waits", "no stages", "ended", "failed", "automatic", "no such stage", "approved"],
)
def test_nothing_to_approve(said: dict[str, Any], policy: Rollout, stage: str, message: str, hint: str) -> None:
    """Why not, and what to look at."""
    with pytest.raises(InputError, match=message) as refused:
        approval(WEB, rolled(**said), policy, stage)
    assert refused.value.hint is not None
    assert hint in refused.value.hint


def test_trying_again() -> None:
    """What has failed is tried again; nothing else is."""
    assert retrial(WEB, rolled(failed_target=T2, phase="Failed")) == Order(id="", verb="retry", target=T2)
    for said in ({}, {"failed_target": T1}, {"target": "", "failed_target": ""}):
        with pytest.raises(InputError, match="nothing of module n/web has failed"):
            retrial(WEB, rolled(**said))
    within = rolled(phase="Degraded", ended=T2)
    within = replace(within, status=replace(within.status, summary=replace(within.status.summary, failed=2)))
    with pytest.raises(InputError, match="didn't stop, though 2 clusters failed"):
        retrial(WEB, within)


@pytest.mark.parametrize(
    ("said", "to", "number"),
    [
        ({}, "", 2),
        ({"last_good": T2, "ended": T2}, "", 2),
        ({"last_good": ""}, "", 2),
        ({"last_good": HISTORY[2].target}, "", 1),
        ({}, "1", 1),
        ({}, "v1.0.0", 1),
        ({}, OLD[:7], 2),
        ({}, T1, 2),
        ({}, "1" * 12, 2),
        ({"target": T1}, NEW, 3),
        ({"failed_target": T2, "rollback_to": T1}, "1", 1),
    ],
    ids=[
        "last good",
        "the one before",
        "none good yet",
        "an older one",
        "number",
        "tag",
        "commit",
        "target",
        "short target",
        "a newer one",
        "further back",
    ],
)
def test_going_back(said: dict[str, Any], to: str, number: int) -> None:
    """To the last good one, else the one before the target, or to what is named."""
    about = rolled(**said)
    order, past = undoing(WEB, about, HISTORY, to)
    assert (past.number, order) == (number, Order(id="", verb="undo", target=about.status.target, to=past.target))


@pytest.mark.parametrize(
    ("said", "to", "message"),
    [
        ({"target": ""}, "", "no target to go back from"),
        ({"target": HISTORY[2].target, "last_good": ""}, "", "no revision before this one"),
        ({"target": "t1:unknown", "last_good": ""}, "", "no revision before this one"),
        ({"last_good": "t1:forgotten"}, "", "isn't known any more"),
        ({}, "v9", "v9 isn't in its history"),
        ({}, "3", "3 is what it is to be at now"),
        ({"failed_target": T2, "rollback_to": T1}, "", r"went back to v1.1.0 \(number 2, t1:111111111111\) already"),
    ],
    ids=["no target", "the first", "the target is unknown", "forgotten", "unknown", "the target itself", "twice"],
)
def test_nowhere_to_go_back_to(said: dict[str, Any], to: str, message: str) -> None:
    """Why not; the hint is where to look."""
    with pytest.raises(InputError, match=message) as refused:
        undoing(WEB, rolled(**said), HISTORY, to)
    assert refused.value.hint is not None
    assert "starling rollout history web -n n" in refused.value.hint


def test_what_failed_is_gone_back_to_only_by_force() -> None:
    """It says where and why it failed; who names none gets one that didn't; who undid one may have it back."""
    failure = RolloutFailure(target=T1, at=NOW, stage="canary", clusters=("a",), message="no such image")
    about = rolled(last_good="", failures=(failure,))
    with pytest.raises(InputError, match=r"number 2, .* failed in stage canary when it was rolled out: no such image"):
        undoing(WEB, about, HISTORY, "2")
    assert undoing(WEB, about, HISTORY, "2", force=True)[1].number == 2
    assert undoing(WEB, about, HISTORY)[1].number == 1
    undone = rolled(last_good="", failures=(replace(failure, by="ann"),))
    assert undoing(WEB, undone, HISTORY, "2")[1].number == 2


def test_a_name_for_several() -> None:
    """One commit may have been rolled out with several instructions: then the number says which, not a guess."""
    same = [HISTORY[0]._replace(number=5), HISTORY[1]._replace(number=4), HISTORY[2]._replace(revision=f"sha1:{OLD}")]
    with pytest.raises(InputError, match="may be any of 4, 1"):
        undoing(WEB, rolled(), same, OLD)
    again = [HISTORY[0], HISTORY[1]._replace(revision=HISTORY[0].revision)]
    assert undoing(WEB, rolled(), again, "v1.2.0")[1].number == 2


@pytest.mark.parametrize(
    ("order", "said", "obeyed"),
    [
        (Order(id="1", verb="approve", target=T2, stage="eu"), {"approvals": (BY_ALICE,)}, True),
        (Order(id="1", verb="approve", target=T2, stage="eu"), {"approvals": (BY_GATE,)}, False),
        (Order(id="1", verb="retry", target=T2), {}, True),
        (Order(id="1", verb="retry", target=T2), {"failed_target": T2}, False),
        (Order(id="1", verb="undo", target=T2, to=T1), {"failed_target": T2, "rollback_to": T1}, True),
        (Order(id="1", verb="undo", target=T2, to=T1), {}, False),
    ],
    ids=["approved", "by its gate only", "again", "still failed", "back", "not back"],
)
def test_what_came_of_it(order: Order, said: dict[str, Any], obeyed: bool) -> None:
    """An order that was only noted is told from one that was carried out."""
    assert is_obeyed(order, rolled(**said).status) is obeyed
