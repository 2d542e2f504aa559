"""From what a server lists to the version that is wanted."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.errors import InputError
from starling.sources.errors import NoSuchVersion, Refused
from starling.sources.git.refs import Ref, choose, parse_listing, patterns

A, B, C, T = (character * 40 for character in "abcd")
LISTING = {
    "HEAD": A,
    "refs/heads/main": A,
    "refs/heads/team/x": B,
    "refs/tags/v1.0.0": T,
    "refs/tags/v1.0.0^{}": B,
    "refs/tags/v1.1.0": C,
    "refs/tags/v2.0.0-rc.1": A,
    "refs/tags/nightly": A,
}


@pytest.mark.parametrize(
    ("ref", "revision", "named"),
    [
        (Ref(branch="main"), f"main@sha1:{A}", A),
        (Ref(branch="team/x"), f"team/x@sha1:{B}", B),
        (Ref(tag="v1.0.0"), f"v1.0.0@sha1:{B}", T),
        (Ref(tag="nightly"), f"nightly@sha1:{A}", A),
        (Ref(semver="1.x"), f"v1.1.0@sha1:{C}", C),
        (Ref(semver="<1.1.0"), f"v1.0.0@sha1:{B}", T),
        (Ref(commit=C), f"sha1:{C}", C),
        (Ref(commit="e" * 64), f"sha256:{'e' * 64}", "e" * 64),
    ],
)
def test_the_version_is_the_one_that_the_ref_means(ref: Ref, revision: str, named: str) -> None:
    """A tag object's version is the commit that it tags; the object itself is remembered for its signature."""
    version = choose(LISTING, ref)
    assert (version.revision, version.named) == (revision, named)
    assert version.is_tag_object is (named != version.commit)


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        (Ref(branch="v1.0.0"), "there is no branch v1.0.0; there are team/x, main"),
        (Ref(tag="main"), "there is no tag main; there are v2.0.0-rc.1, v1.1.0, v1.0.0, nightly"),
        (Ref(semver=">=3"), "none of 4 tags is a version in >=3; there are v2.0.0-rc.1, v1.1.0, v1.0.0, nightly"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(ref: Ref, says: str) -> None:
    """A branch isn't a tag."""
    with pytest.raises(NoSuchVersion) as caught:
        choose(LISTING, ref)
    assert caught.value.message == says


def test_a_server_that_lists_something_else_is_not_believed() -> None:
    """Lines are an id, a tab, a name."""
    assert parse_listing(f"{A}\trefs/heads/main\n".encode()) == {"refs/heads/main": A}
    with pytest.raises(Refused):
        parse_listing(b"<html>\n")


@pytest.mark.parametrize(
    "given_",
    [{}, {"branch": "a", "tag": "b"}, {"commit": "abc"}, {"branch": "-x"}, {"tag": "a..b"}, {"branch": "HEAD"}],
)
def test_exactly_one_sensible_ref(given_: dict[str, str]) -> None:
    """Nothing that git could take for an option or a pattern."""
    with pytest.raises(InputError):
        Ref(**given_)


@given(
    name=st.text(st.sampled_from("ab./@{-~^*:\\ \x7fäl"), min_size=1, max_size=8).filter(lambda name: "\0" not in name)
)
def test_names_are_those_that_git_allows(name: str) -> None:
    """`git check-ref-format` decides, and besides, none that a command could take for an option or HEAD."""
    try:
        Ref(branch=name)
    except InputError:
        allowed = False
    else:
        allowed = True
    checked = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False).returncode == 0
    assert allowed is (checked and not name.startswith("-") and name not in ("@", "HEAD"))


def test_no_more_is_asked_for_than_is_needed() -> None:
    """A branch is one ref; a range needs all tags."""
    assert patterns(Ref(branch="main")) == ("refs/heads/main",)
    assert patterns(Ref(tag="v1")) == ("refs/tags/v1", "refs/tags/v1^{}")
    assert patterns(Ref(semver="1.x")) == ("refs/tags/*",)
    assert patterns(Ref(commit=A)) == ("HEAD",)
