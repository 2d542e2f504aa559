"""What a Module is on a cluster is told in a version and a word."""

import msgspec
import pytest

from starling.api.v1alpha1 import Entry, EntryStatus
from starling.cli.standings import in_text, standing, version_of_revision
from tests.unit.cli.fleets import NEW, OLD, cluster, entry, module, proxy, status


def nothing_applied(state: str) -> EntryStatus:
    """What a cluster says that has never had it."""
    return msgspec.structs.replace(status("web", state=state), revision="")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([], "→ v1.2.0 pending"),
        ([entry("web")], "→ v1.2.0 updating"),
        ([entry("web"), status("web")], "v1.2.0 ok"),
        ([entry("web"), status("web", state="failed")], "v1.2.0 failed"),
        ([entry("web"), nothing_applied("failed")], "→ v1.2.0 failed"),
        ([entry("web"), status("web", state="failed", applied="v1.1.0")], "aaaaaaa → v1.2.0 failed"),
        ([entry("web"), nothing_applied("updating")], "→ v1.2.0 updating"),
        ([entry("web"), status("web", state="updating")], "v1.2.0 updating"),
        ([entry("web"), status("web", state="updating", applied="v1.1.0")], "aaaaaaa → v1.2.0 updating"),
        ([entry("web"), status("web", target="v1.1.0", applied="v1.1.0")], "aaaaaaa → v1.2.0 updating"),
        ([entry("web", "v1.1.0"), status("web", target="v1.1.0", applied="v1.1.0")], "v1.1.0 → v1.2.0 pending"),
        (
            [entry("web", "v1.1.0"), status("web", target="v1.1.0", applied="v1.1.0", state="failed")],
            "v1.1.0 → v1.2.0 failed",
        ),
        ([entry("other"), status("other")], "→ v1.2.0 pending"),
    ],
    ids=[
        "its turn hasn't come",
        "nothing heard yet",
        "well",
        "failed",
        "failed before anything was there",
        "failed before it was there",
        "on its way for the first time",
        "applied, and not well yet",
        "on its way",
        "says something about what was before",
        "well, at the version before",
        "failed, at the version before",
        "has another module",
    ],
)
def test_where_a_module_goes(parts: list[Entry | EntryStatus], told: str) -> None:
    """The word follows from the entry, what the cluster says of it, and the Module's target."""
    assert in_text(standing(cluster("c"), proxy("c", *parts), module("web"))) == told


def test_where_it_does_not_go() -> None:
    """A cluster that isn't selected has a dash; one that still has it is being left."""
    elsewhere = module("web", selector={"region": "eu"})
    assert in_text(standing(cluster("c"), None, elsewhere)) == "-"
    assert in_text(standing(cluster("c"), proxy("c", entry("web"), status("web")), elsewhere)) == "v1.2.0 leaving"
    assert in_text(standing(cluster("c"), proxy("c", status("web")), elsewhere)) == f"{NEW[:7]} leaving"


def test_clusters_that_nothing_new_reaches() -> None:
    """An unreachable one is marked, whatever it said; a cordoned one is held where it is."""
    there = proxy("c", entry("web"), status("web"))
    behind = proxy("c", entry("web", "v1.1.0"), status("web", target="v1.1.0", applied="v1.1.0"))
    assert in_text(standing(cluster("c", phase="Unreachable"), there, module("web"))) == "v1.2.0 unreachable"
    assert in_text(standing(cluster("c", mode="Cordoned"), behind, module("web"))) == "v1.1.0 → v1.2.0 held"


def test_after_a_rollback_those_are_well_that_are_back() -> None:
    """What a cluster is to have is then what was good before; one that isn't back yet is pending."""
    back = module("web")
    failed = msgspec.structs.replace(back.status, failed_target="v1.2.0", rollback_to="v1.1.0")
    back = msgspec.structs.replace(back, status=failed)
    there = proxy("c", entry("web", "v1.1.0"), status("web", target="v1.1.0", applied="v1.1.0"))
    assert in_text(standing(cluster("c"), there, back)) == "v1.1.0 ok"
    assert in_text(standing(cluster("c"), proxy("c", entry("web"), status("web")), back)) == "v1.2.0 pending"
    stopped = msgspec.structs.replace(back, status=msgspec.structs.replace(failed, rollback_to=""))
    assert in_text(standing(cluster("c"), there, stopped)) == "v1.1.0 → v1.2.0 pending"


@pytest.mark.parametrize(
    ("revision", "told"),
    [
        (f"v1.2.0@sha1:{OLD}", "v1.2.0"),
        (f"podinfo/1.2.0-rc.1@sha1:{OLD}", "podinfo/1.2.0-rc.1"),
        (f"main@sha1:{OLD}", "main@aaaaaaa"),
        (f"release-1.2@sha1:{OLD}", "release-1.2@aaaaaaa"),
        (f"team@home@sha1:{OLD}", "team@home@aaaaaaa"),
        (f"sha1:{OLD}", "aaaaaaa"),
        (f"sha256:{'c' * 64}", "ccccccc"),
        ("", ""),
    ],
)
def test_versions_are_short(revision: str, told: str) -> None:
    """A tag that is a version says it all; what moves comes with its commit."""
    assert version_of_revision(revision) == told
