"""`starling rollout status|history|watch` and `starling cluster list` say where things stand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from starling.api.v1alpha1 import Admitted, ClusterStatus, Rollout, StageApproval
from starling.cli.clusters import cluster_table
from starling.cli.courses import course_document, course_lines, history_lines, stages_of, watch_line
from starling.cli.fleet import Fleet
from tests.unit.cli.fleets import cluster, entry, module, proxy, status
from tests.unit.cli.rollouts import HISTORY, NOW, T1, T2, rolled, seen

APPROVED = StageApproval(stage="eu", by="alice", at=NOW - timedelta(minutes=3))
EU_S_TURN: dict[str, Any] = {"stage": "eu", "stages_done": ("canary",)}
PASSED = StageApproval(stage="eu", by="https://gate.example", at=NOW, gate=True)


@pytest.mark.parametrize(
    ("said", "states"),
    [
        ({"target": ""}, ["to come", "to come", "to come"]),
        ({"stage": "canary"}, ["waits", "to come", "to come"]),
        ({"stage": "canary", "stages_done": ("eu",)}, ["waits", "done", "to come"]),
        ({"stage": "canary", "stage_started": NOW}, ["its turn", "to come", "to come"]),
        ({"stage": "canary", "stage_started": NOW, "baking_since": NOW}, ["baking", "to come", "to come"]),
        ({**EU_S_TURN}, ["done", "waits for approval", "to come"]),
        ({**EU_S_TURN, "approvals": (APPROVED,)}, ["done", "waits for its gate", "to come"]),
        ({**EU_S_TURN, "approvals": (APPROVED, PASSED)}, ["done", "waits", "to come"]),
        ({**EU_S_TURN, "stage_started": NOW, "failed_target": T2}, ["done", "stopped", "to come"]),
        ({"stage": "rest", "stages_done": ("canary", "eu"), "stage_started": NOW}, ["done", "done", "its turn"]),
        ({"ended": T2}, ["done", "done", "done"]),
        ({"ended": T1, "stage": "gone"}, ["to come", "to come", "to come"]),
    ],
    ids=[
        "no target",
        "may not start",
        "a later one is done",
        "its turn",
        "baking",
        "approval",
        "gate",
        "window",
        "failed",
        "rest",
        "ended",
        "a stage that was",
    ],
)
def test_how_far_each_stage_is(said: dict[str, Any], states: list[str]) -> None:
    """Those before the one whose turn it is are done, those after it are to come."""
    assert [each.state for each in stages_of(seen(rolled(**said)))] == states


def test_a_bake_has_an_end() -> None:
    """It is known from when the bake began, and is told of that stage only."""
    stages = stages_of(seen(rolled(stage="canary", stage_started=NOW, baking_since=NOW)))
    assert [each.until for each in stages] == [NOW + timedelta(minutes=10), None, None]


def test_without_stages_there_is_no_list() -> None:
    """One stage of everything isn't worth a table."""
    assert stages_of(seen(rolled(stage="rest"), Rollout())) == []


def test_a_rollout_line_by_line() -> None:
    """Facts, stages with who approved, clusters on their way, and those that failed with what they say."""
    about = rolled(
        **EU_S_TURN,
        stage_started=NOW,
        target_since=NOW - timedelta(hours=2),
        approvals=(APPROVED,),
        admitted=(Admitted(cluster="b2", since=NOW, target=T2), Admitted(cluster="x", since=NOW, leave=True)),
    )
    assert list(course_lines(seen(about), NOW)) == [
        "module n/web",
        "  phase      Progressing",
        "  ready      no (Progressing): 1 of 3 clusters are at the target",
        "  version    v1.2.0",
        f"  revision   v1.2.0@sha1:{'b' * 40}",
        f"  target     {T2}, for 2h",
        f"  last good  {T1} (v1.1.0)",
        "  clusters   3: 1 ok, 1 pending, 1 failed",
        "",
        "STAGE   STATE     OK   APPROVED",
        "canary  done      1/1",
        "eu      its turn  0/1  by alice, 3m ago",
        "rest    to come   0/1",
        "",
        "  updating: b2",
        "",
        "  b  v1.2.0 failed  no image",
    ]


def test_a_rollout_that_goes_back() -> None:
    """What failed and where clusters return to is told, and what keeps it paused."""
    about = rolled(failed_target=T2, rollback_to=T1, phase="RollingBack")
    about = msgspec.structs.replace(about, spec=msgspec.structs.replace(about.spec, suspend=True))
    lines = list(course_lines(seen(about, Rollout(paused=True)), NOW))
    assert "  failed      target" in lines
    assert f"  returns to  {T1} (v1.1.0)" in lines
    assert "  paused      by spec.suspend and by its policy" in lines


def test_what_is_counted_of_stages() -> None:
    """Those that are at the target; if that is left again, those that are back."""
    there = {"target": T1, "state": "succeeded"}
    back = proxy("a", msgspec.structs.replace(entry("web"), target=T1), status("web", **there))
    fleet = Fleet.of([cluster("a", {"ring": "canary"})], [], [back])
    for said, stage in [
        ({}, "STAGE   STATE     OK   APPROVED|canary  its turn  0/1"),
        ({"failed_target": T2}, "STAGE   STATE    OK   APPROVED|canary  stopped  0/1"),
        ({"failed_target": T2, "rollback_to": T1}, "STAGE   STATE    BACK  APPROVED|canary  stopped  1/1"),
    ]:
        about = rolled(stage="canary", stage_started=NOW, **said)
        lines = list(course_lines(replace(seen(about), standings=fleet.of_rolled(about)), NOW))
        assert stage in "|".join(lines)


def test_a_rollout_as_json() -> None:
    """Programs are told the same."""
    document = msgspec.json.decode(msgspec.json.encode(course_document(seen(rolled(stage="eu", phase="Waiting")))))
    assert (document["phase"], document["waitsForApproval"], document["current"]) == ("Waiting", "eu", True)
    assert document["stages"][1] == {
        "name": "eu", "state": "waits for approval", "until": None, "clusters": 1, "ok": 0, "approvedBy": "",
        "approvedAt": None,
    }  # fmt: skip
    assert document["failed"] == [{"cluster": "b", "message": "no image"}]


def test_history_says_what_each_is() -> None:
    """The target, the last good one and the one that failed are marked."""
    lines = list(history_lines(rolled(failed_target=T2, rollback_to=T1), HISTORY, NOW + timedelta(minutes=5)))
    assert [line.split(maxsplit=4) for line in lines] == [
        ["NUMBER", "VERSION", "TARGET", "AGE", "IS"],
        ["3", "v1.2.0", "t1:222222222222", "5m", "target, failed"],
        ["2", "v1.1.0", "t1:111111111111", "5m", "last good, goes back to"],
        ["1", "v1.0.0", "t1:333333333333", "5m"],
    ]


def test_a_line_of_a_watch() -> None:
    """When, which version, where it stands."""
    assert watch_line(rolled(stage="eu"), NOW) == (
        "12:00:00  v1.2.0  Progressing, stage eu: 1 of 3 clusters are at the target"
    )


def test_clusters_at_a_glance() -> None:
    """One that is Ready is seen now, another when it was; Modules are counted."""
    lost = msgspec.structs.replace(
        cluster("b", mode="Cordoned"), status=ClusterStatus(phase="Unreachable", last_seen=NOW - timedelta(hours=3))
    )
    there = msgspec.structs.replace(
        cluster("a"), status=ClusterStatus(phase="Ready", kubernetes_version="v1.36.0", agent_version="1.0")
    )
    fleet = Fleet.of([there, lost], [module("web"), module("db")], [proxy("a", entry("web"), status("web"))])
    assert cluster_table(fleet, NOW, everywhere=False) == [
        ["CLUSTER", "PHASE", "MODE", "BY", "SEEN", "KUBERNETES", "AGENT", "OK"],
        ["a", "Ready", "Active", "pull", "now", "v1.36.0", "1.0", "1/2"],
        ["b", "Unreachable", "Cordoned", "pull", "3h", "-", "-", "0/2"],
    ]
