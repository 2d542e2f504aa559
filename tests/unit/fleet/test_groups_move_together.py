"""SyncGroups: one target for several things, and one state for all that a cluster has of them."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.api.v1alpha1 import Entry, ExactGit, SourceReference, SyncTemplate
from starling.fleet import Claim, ModuleRevision, Part, assemble, group_revision, held_parts, part_claim, part_name

GIT = ExactGit(url="https://git.test/app.git", commit="a" * 40)
ONE = ModuleRevision(
    template=SyncTemplate(source=SourceReference(name="app")), source=GIT, revision="v1@sha1:a", target="t1:one"
)
TWO = msgspec.structs.replace(ONE, target="t1:two", revision="v2@sha1:b")


def test_the_target_is_of_all_parts() -> None:
    """What one of them comes to, or is called, makes another target; each part then has the group's."""
    both = group_revision({"a": ONE, "b": TWO})
    assert {part.target for part in both.parts.values()} == {both.target}
    others = ({"a": ONE}, {"a": TWO, "b": ONE}, {"a": ONE, "c": TWO}, {"a": ONE, "b": ONE})
    assert both.target not in {group_revision(each).target for each in others}
    assert group_revision({"b": TWO, "a": ONE}).target == both.target
    assert both.revision == "v1@sha1:a, v2@sha1:b"


A, B = Part("a", "t1:x", 4, "t1:x", "succeeded"), Part("b", "t1:x", 5, "t1:x", "succeeded")
NAMES = {"t1:x": frozenset("ab"), "t1:y": frozenset("a")}


@pytest.mark.parametrize(
    ("parts", "entry", "reported", "state"),
    [
        pytest.param([A, B], "t1:x", "t1:x", "succeeded", id="all there"),
        pytest.param([A, replace(B, state="updating")], "t1:x", "t1:x", "updating", id="one on its way"),
        pytest.param([replace(A, state="failed"), replace(B, state="updating")], "t1:x", "t1:x", "failed", id="failed"),
        pytest.param([A, replace(B, reported="t1:w")], "t1:x", "", "", id="one tells of before"),
        pytest.param([A, replace(B, target="t1:y")], "", "t1:x", "succeeded", id="two targets"),
        pytest.param([A], "", "t1:x", "succeeded", id="one missing"),
        pytest.param(
            [replace(A, target="t1:y"), replace(B, target="t1:y")], "", "t1:x", "succeeded", id="one too many"
        ),
        pytest.param([replace(A, target="t1:old")], "t1:old", "t1:x", "succeeded", id="nobody knows what it had"),
    ],
)
def test_a_cluster_is_there_with_just_its_parts(parts: list[Part], entry: str, reported: str, state: str) -> None:
    """Its target is one that all parts have, and no part of another is there; its state is the worst of theirs."""
    held = held_parts(parts, NAMES.get)
    assert (held.entry, held.reported, held.state) == (entry, reported, state)
    assert held.admission == min(part.admission for part in parts)


def test_nothing_is_nothing() -> None:
    """A cluster without parts has no entry."""
    assert held_parts([], NAMES.get).entry is None


def entry(name: str, target: str, admission: int) -> Entry:
    """A part as a cluster has it."""
    return Entry(
        name=part_name("g", name), unit="", target=target, admission=admission, source=SourceReference(git=GIT)
    )


@given(
    old=st.sets(st.sampled_from("abcd"), min_size=1),
    new=st.sets(st.sampled_from("abcd"), min_size=1),
    admitted=st.booleans(),
)
def test_parts_come_and_go_with_the_target(old: set[str], new: set[str], *, admitted: bool) -> None:
    """A cluster that is admitted has just the new parts, any other keeps just what it has."""
    current = [entry(name, "t1:old", 3) for name in sorted(old)]
    parts = {"t1:old": old, "t1:new": new}
    claims = []
    for name in sorted(old | (new if admitted else set())):
        claim = Claim(
            module=part_name("g", name),
            target="t1:new",
            admission=7,
            selected=True,
            admitted=7 if admitted else None,
            make=lambda target, name=name: entry(name, target, 0) if name in parts[target] else None,  # type: ignore[misc]
        )
        claims.append(part_claim(claim, wanted=name in new))
    after = {each.name: (each.target, each.admission) for each in assemble(current, claims)}
    wanted = {part_name("g", name): ("t1:new", 7) for name in new} if admitted else None
    assert after == (wanted or {part_name("g", name): ("t1:old", 3) for name in old})
