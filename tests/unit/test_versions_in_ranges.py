"""Which tag a range of versions picks."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from starling.api.v1alpha1.source import SemverRange
from starling.errors import InputError
from starling.versions import best

NPM = json.loads((Path(__file__).parent / "npm_ranges.json").read_text())
"""Names, and for each range those that npm's own semver (7.8.6) says are in it."""

RULE = get_args(SemverRange)[2].extra_json_schema["x-kubernetes-validations"][0]["rule"]
ACCEPTED = RULE.removeprefix("self.matches(r'").removesuffix("')")
"""What the CRD lets pass as a range."""


@pytest.mark.parametrize("range_", NPM["within"])
def test_ranges_are_npms(range_: str) -> None:
    """A range admits exactly the versions that npm's own semver admits; the table holds npm's answers."""
    assert [name for name in NPM["names"] if best([name], range_)] == NPM["within"][range_]


@pytest.mark.parametrize(
    ("range_", "within"),
    [
        (">=1.1.0, <2", ["1.1.0", "1.2.0", "1.3.0"]),
        (">=1.1.0 ,<1.3,!=1.2", ["1.1.0"]),
        ("=>1.2.0 =<1.3.0", ["1.2.0", "1.3.0"]),
        ("~>1.2", ["1.2.0"]),
        ("!=1.2.0 !=2.x", ["1.1.0", "1.3.0"]),
        ("!=1", ["2.0.0"]),
        ("1.1 - 1.3, !=1.2.0", ["1.1.0", "1.3.0"]),
        ("!=1.2, 1.1 - 1.3 || v2", ["1.1.0", "1.3.0", "2.0.0"]),
        (">=1.3-0", ["1.3.0-rc.1", "1.3.0", "2.0.0"]),
        (">=1.3-0 !=1.3.0-rc.1", ["1.3.0", "2.0.0"]),
        ("!=1.3.0-beta", ["1.1.0", "1.2.0", "1.3.0", "2.0.0"]),
        ("1.3.0-rc.1 || *", ["1.1.0", "1.2.0", "1.3.0-rc.1", "1.3.0", "2.0.0"]),
    ],
)
def test_what_flux_allows_besides(range_: str, within: list[str]) -> None:
    """Commas are and; =>, =<, ~> and != are known; hyphens stand among others; an exclusion admits no prerelease."""
    names = ["1.1.0", "1.2.0", "1.3.0-rc.1", "1.3.0", "2.0.0"]
    assert [name for name in names if best([name], range_)] == within


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["v1.2.9", "v1.2.10", "v1.2.2"], "v1.2.10"),
        (["1.2.3", "v1.2.4", "1.2.5"], "1.2.5"),
        (["v1.2", "release-1.2.3", "V1.2.3", "1.2.3.4", "01.2.3", "vv1.2.3", "1.2.3-01", "1.2.3-", "1.2.3 "], None),
        (["1.2.3\n", "1.2.٣", "", "v"], None),
        (["99999999999999999999.0.0"], None),
        (["18446744073709551615.0.0"], "18446744073709551615.0.0"),
        (["9" * 5000 + ".0.0", "1.0.0"], "1.0.0"),
        ([], None),
    ],
)
def test_which_names_are_versions(names: list[str], expected: str | None) -> None:
    """Three numbers, with or without a v; anything else doesn't count. The highest by precedence is taken."""
    assert best(names, "*") == expected


@given(st.permutations(["1.2.3", "v1.2.3", "1.2.3+b.2", "v1.2.3+b.10", "1.2.3+b", "1.2.3+1", "1.2.2+z"]))
def test_the_choice_among_equals_is_fixed(names: list[str]) -> None:
    """Build metadata decides only among equals, higher first; then the one with a v; never the order of names."""
    order = ["v1.2.3+b.10", "1.2.3+b.2", "1.2.3+b", "1.2.3+1", "v1.2.3", "1.2.3", "1.2.2+z"]
    for taken, expected in enumerate(order):
        assert best([name for name in names if name not in order[:taken]], "^1") == expected


@pytest.mark.parametrize(
    ("range_", "because"),
    [
        ("", "empty"),
        ("1 ||", "empty"),
        ("1,,2", '",2"'),
        ("latest", '"latest"'),
        ("01.2", '"01.2"'),
        ("1.2.3.4", '"1.2.3.4"'),
        ("1.2.3-01", '"1.2.3-01"'),
        ("1.2.3-a..b", '"1.2.3-a..b"'),
        (">=1.2 - 2", '" - "'),
        ("1 - 2 - 3", '" - "'),
        ("1 - >2", '" - "'),
        ("1 -", '"-"'),
        ("1.2.x-beta", "wildcard"),
        ("*-0", "wildcard"),
        ("1.x.3", "wildcard"),
        ("!=1.2-beta", "prerelease"),
        (">*", "any version"),
        ("1 - *", "any version"),
        ("99999999999999999999", "larger"),
    ],
)
def test_what_is_no_range(range_: str, because: str) -> None:
    """What is wrong is refused with the range, the part that is wrong, and right ones."""
    with pytest.raises(InputError) as caught:
        best(["1.0.0"], range_)
    assert f'"{range_}"' in caught.value.message
    assert because in caught.value.message
    assert "~1.4" in (caught.value.hint or "")


@given(st.from_regex(ACCEPTED, fullmatch=True).filter(lambda text: len(text) <= 256))
@example(f"{'9' * 250}")
@example("1.2.3-" + "9" * 250)
def test_whatever_the_crd_lets_pass(range_: str) -> None:
    """A range that the API server admits is either understood or refused in words; nothing else happens."""
    try:
        best(["1.0.0", "v2.3.4-rc.1"], range_.rstrip("\n"))
    except InputError as error:
        if range_.rstrip("\n") not in error.message:
            pytest.fail(f"{error} doesn't quote {range_}")
