"""What a SyncGroup is on a cluster is told as a Module is, all its parts as one."""

from typing import Any

import msgspec
import pytest

from starling.api import ObjectMeta, Sync
from starling.api.v1alpha1 import Entry, EntryStatus, SyncProblem
from starling.cli.fleet import Fleet, Key
from starling.cli.get import document, matrix, summary
from starling.cli.standings import direct_standing, group_standing, in_text
from tests.unit.cli.fleets import cluster, entry, group, module, part, proxy, status, sync

OLDER = {"target": "v1.1.0", "applied": "v1.1.0"}
BROKEN: dict[str, Any] = {"readiness": "Failed", "problems": (SyncProblem(reason="Invalid", message="no such field"),)}


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([], "→ v1.2.0 pending"),
        ([part("a"), part("b")], "→ v1.2.0 updating"),
        ([part("a"), status("platform.a"), part("b")], "v1.2.0 updating"),
        ([part("a"), status("platform.a"), part("b"), status("platform.b")], "v1.2.0 ok"),
        ([part("a"), status("platform.a")], "v1.2.0 updating"),
        ([part("a"), status("platform.a"), part("b"), status("platform.b", state="failed")], "v1.2.0 failed"),
        (
            [part("a", "v1.1.0"), status("platform.a", **OLDER), part("b"), status("platform.b")],
            "v1.1.0, v1.2.0 → v1.2.0 pending",
        ),
        ([entry("a"), status("a"), entry("platform.a"), status("platform.a")], "→ v1.2.0 pending"),
    ],
    ids=[
        "its turn hasn't come",
        "nothing heard yet",
        "nothing heard of one",
        "well",
        "one isn't there yet",
        "one failed",
        "one at the version before",
        "has Modules of such names",
    ],
)
def test_parts_that_travel(parts: list[Entry | EntryStatus], told: str) -> None:
    """The worst of them is what the whole is."""
    assert in_text(group_standing(cluster("c"), proxy("c", *parts), [], group("a", "b"))) == told


@pytest.mark.parametrize(
    ("syncs", "told"),
    [
        ([sync("a"), sync("b")], "v1.2.0 ok"),
        ([sync("a")], "v1.2.0 updating"),
        ([sync("a"), sync("b", observed_generation=0)], "v1.2.0 updating"),
        ([sync("a"), sync("b", **BROKEN)], "v1.2.0 failed"),
        ([sync("a", "v1.1.0"), sync("b", "v1.1.0")], "v1.1.0 → v1.2.0 pending"),
    ],
    ids=["well", "one isn't there yet", "one says nothing of it yet", "one failed", "at the version before"],
)
def test_parts_that_go_straight_there(syncs: list[Sync], told: str) -> None:
    """What Syncs on the hub say is told the same way."""
    assert in_text(group_standing(cluster("c"), None, syncs, group("a", "b"))) == told


def test_syncs_of_no_group_are_told_of() -> None:
    """By a name that tells what they are, for the cluster they go to; one that is suspended is held."""
    alone = msgspec.structs.replace(sync("a", **BROKEN), metadata=ObjectMeta(name="own", namespace="n", generation=1))
    held = msgspec.structs.replace(alone, spec=msgspec.structs.replace(alone.spec, suspend=True))
    fleet = Fleet.of([cluster("c"), cluster("d")], [], [], [], [alone, sync("a")])
    [found] = fleet.on(Key("n", "c"))
    assert (found.name, found.state, found.message) == ("sync/own", "failed", "no such field")
    assert fleet.on(Key("n", "d")) == []
    assert direct_standing(cluster("c"), held).state == "held"
    assert direct_standing(cluster("c", phase="Unreachable"), alone).state == "unreachable"


def test_what_failed_is_named() -> None:
    """Of several parts, which one it is and what it says."""
    found = group_standing(cluster("c"), None, [sync("a"), sync("b", **BROKEN)], group("a", "b"))
    assert found is not None
    assert (found.message, found.readiness) == ("platform.b: no such field", "Failed")


def test_in_the_table() -> None:
    """After the Modules, by the name that commands take; a group of the hub's own goes to no cluster."""
    fleet = Fleet.of(
        [cluster("c"), cluster("d", {"ring": "canary"})],
        [module("web")],
        [proxy("c", entry("web"), status("web"))],
        [group("a", selector={"ring": "canary"})],
        [sync("a")],
    )
    assert matrix(fleet, None).splitlines() == [
        "CLUSTER  PHASE  MODE    web               syncgroup/platform",
        "c        Ready  Active  v1.2.0 ok         v1.2.0 leaving",
        "d        Ready  Active  → v1.2.0 pending  → v1.2.0 pending",
    ]
    assert "1 syncgroup (1 progressing)" in summary(fleet)
    told = next(each for each in document(fleet)["clusters"] if each["name"] == "c")
    assert [(each.name, each.state) for each in told["syncGroups"]] == [("syncgroup/platform", "leaving")]
    assert [each.name for each in fleet.on(Key("n", "d"))] == ["web", "syncgroup/platform"]
