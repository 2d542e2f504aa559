"""The rules that the API server holds a Source's ref to are git's own, and those of version ranges."""

import functools
import re
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from starling.api import Source
from starling.api.crds import crd

_TERM = r"(!?)self\.matches\(r'([^']*)'\)"


@functools.cache
def terms(field: str) -> list[tuple[bool, str]]:
    """The rule on a field of `ref`, which is made of regular expressions only: each, and whether it is to match."""
    schema: dict[str, Any] = crd(Source)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in ("spec", "git", "ref", field):
        schema = schema["properties"][name]
    (rule,) = (each["rule"] for each in schema["x-kubernetes-validations"])
    assert re.fullmatch(rf"{_TERM}( && {_TERM})*", rule)
    # To Python a $ also stands before a last newline, to the API server only at the end.
    return [(not negation, regex.replace("$", r"\Z")) for negation, regex in re.findall(_TERM, rule)]


def allowed(field: str, value: str) -> bool:
    """Whether the CRD's rule on a field of `ref` allows a value."""
    return all(bool(re.search(regex, value)) is expected for expected, regex in terms(field))


def git_allows(name: str) -> bool:
    """Whether git takes a name for a branch's."""
    command = ["git", "check-ref-format", "--branch", name]
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


pieces = st.sampled_from(
    [*"a1/.-@{}~^:?*[\\ \t\n\x01\x1f\x7f\x85\u00a0é'\"", "..", "//", ".lock", "@{", "HEAD", "lock"]
)
names = st.lists(pieces, min_size=1, max_size=6).map("".join)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(deadline=None)  # each example starts a process
@given(names | texts)
@example("a//b")
@example("a/.b")
@example("a./b")
@example("a.")
@example("a.lock/b")
@example("-a")
@example("a/-b")
@example("HEAD")
@example("a\n")
def test_a_ref_is_allowed_where_git_allows_it(name: str) -> None:
    """Branches and tags have the names that git takes, but for @ alone, which is another word for HEAD."""
    expected = git_allows(name) and name != "@"
    assert allowed("branch", name) is expected
    assert allowed("tag", name) is expected


def test_a_nul_is_no_part_of_a_ref() -> None:
    """A NUL, which no command's arguments can hold, is refused too."""
    assert not allowed("branch", "a\0b")


numbers = st.sampled_from(["0", "1", "12", "x", "X", "*"])
identifiers = st.sampled_from(["", "-alpha", "-rc.1", "-0.beta-2", "+build.5", "-rc+x86"])
versions = st.builds(
    lambda v, parts, more: v + ".".join(parts) + more,
    st.sampled_from(["", "v"]),
    st.lists(numbers, min_size=1, max_size=3),
    identifiers,
)
operators = st.sampled_from(["", "=", "!=", "<", "<=", ">", ">=", "~", "~>", "^", ">= ", "^ "])
compared = st.builds(str.__add__, operators, versions)
separators = st.sampled_from([" ", ", ", ",", " || ", "||", " - "])
ranges = st.lists(st.tuples(compared, separators), min_size=1, max_size=4).map(
    lambda each: "".join(version + separator for version, separator in each[:-1]) + each[-1][0]
)


@given(ranges, separators, st.sampled_from(["latest", "next", "x1y", "v", "-rc", "||", ","]))
def test_a_range_is_made_of_versions(valid: str, separator: str, word: str) -> None:
    """Versions, compared and combined, are a range; a word that is no version spoils it, before or after."""
    assert allowed("semver", valid)
    assert not allowed("semver", valid + separator + word)
    assert not allowed("semver", word + separator + valid)


@pytest.mark.parametrize(
    "text", [" ", "||", ",", "latest", "next", "fix", "-", "v", "1 -", "1||", "1 >=", "1.2.3.4", "1-"]
)
def test_what_holds_no_version_is_no_range(text: str) -> None:
    """Words, and what stands between versions, are no range by themselves."""
    assert not allowed("semver", text)
