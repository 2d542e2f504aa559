"""Our choice of versions against the library that Flux uses, Masterminds/semver, where both mean the same.

One round is three hundred ranges and as many lists of tags. Prereleases are left out: in Flux's ranges, one bound that
names a prerelease admits those of all versions.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from starling.errors import InputError
from starling.versions import best
from tests.integration.go_programs import GoProgram, go_program
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds
RELEASES = [f"{prefix}{a}.{b}.{c}" for a in range(4) for b in range(3) for c, prefix in enumerate(("", "v", ""))]

INTENDED = [
    "has a number after a wildcard",
    "has a wildcard and names a prerelease",
    "compares with any version",
    "leaves numbers open and names a prerelease",
]
"""What we refuse though Flux reads it, since npm reads it differently or not at all."""


class Go:
    """Flux's choice."""

    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def pick(self, names: list[str], range_: str) -> Any:
        """What the program says of names and a range."""
        return self._program.ask({"names": names, "range": range_})


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    """Flux's choice, built here."""
    with go_program("gosemver", tmp_path_factory) as program:
        yield Go(program)


PART = st.sampled_from(["0", "1", "2", "3", "x", "X", "*", "1", "2"])
VERSION = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "v"]),
    st.lists(PART, min_size=1, max_size=3).map(".".join),
    st.sampled_from(["", "", "", "-0", "-beta.1"]),
    st.sampled_from(["", "", "+build.1"]),
)
TERM = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "=", "!=", ">", ">=", "=>", "<", "<=", "=<", "~", "~>", "^"]),
    st.sampled_from(["", " "]),
    VERSION,
)
TERMS = st.builds(
    lambda first, others: first + "".join(joint + term for joint, term in others),
    TERM,
    st.lists(st.tuples(st.sampled_from([" ", ",", ", ", " , "]), TERM), max_size=3),
)
# Flux's own rewriting of hyphens trips over what stands before them, so they stand alone.
RANGE = st.lists(TERMS | st.builds("{} - {}".format, VERSION, VERSION), min_size=1, max_size=3).map(" || ".join)


@settings(max_examples=300 * ROUNDS)
@example("~0.0.1")
@given(range_=RANGE)
def test_releases_in_a_range(go: Go, range_: str) -> None:
    """Of releases, a range admits the same ones in Flux, unless we refuse it for an intended reason."""
    theirs = go.pick(RELEASES, range_)
    try:
        ours = [name for name in RELEASES if best([name], range_)]
    except InputError as error:
        if not theirs["refused"] and not any(part in error.message for part in INTENDED):
            pytest.fail(f"{range_}: {error}, Flux reads it")
        return
    assert not theirs["refused"], range_
    if not quirk(range_):
        assert ours == theirs["within"], range_


def quirk(range_: str) -> bool:
    """Tell whether it has ~0.0.0, which Flux takes for any version and npm for 0.0.x."""
    return re.search(r"~>? *v?0\.0\.0", range_) is not None


@settings(max_examples=300 * ROUNDS)
@given(
    names=st.lists(
        st.from_regex(r"v?[0-9]{1,3}(\.[0-9]{1,2}){0,3}(-[0-9a.-]{0,5})?(\+[0-9a.-]{0,5})?", fullmatch=True)
        | st.text(alphabet="v01.-+a", max_size=12)
        | st.integers(2**64 - 3, 2**64 + 3).map("{}.0.0".format)
    )
)
def test_which_tags_are_versions(go: Go, names: list[str]) -> None:
    """A tag counts as a version if it does in Flux."""
    assert [name for name in names if counts(name)] == go.pick(names, "*")["versions"]


def counts(name: str) -> bool:
    """Tell whether a tag is in the range of just its own version."""
    try:
        return best([name], "=" + name.removeprefix("v")) is not None
    except InputError:
        return False
