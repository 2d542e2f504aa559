"""Which files patterns leave out."""

import time

import pytest

from starling.sources.ignore import Ignore


@pytest.mark.parametrize(
    ("patterns", "out", "kept"),
    [
        (["docs/**"], ["docs/a", "docs/b/c"], ["docs", "a/docs/b"]),
        (["*.md", "!keep.md"], ["a.md", "b/c.md"], ["keep.md", "b/keep.md", "a.mdx"]),
        (["/root-only"], ["root-only", "root-only/a"], ["a/root-only"]),
        (["dir/"], ["dir/a", "b/dir/c"], ["dir", "b/dir"]),
        (["a/b"], ["a/b", "a/b/c"], ["x/a/b"]),
        (["**/b"], ["b", "a/b", "a/c/b/d"], ["ab"]),
        (["a/**/b"], ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "x/a/b"]),
        (["**/a*b/**/c"], ["ab/c", "ax/ab/c", "x/axb/y/z/c"], ["ax/b/c", "ab/xc"]),
        (["a*b*c"], ["abc", "a1b2b3c"], ["ac", "a/bc", "abcd"]),
        (["[a-c]?[!x]"], ["a11", "c1y"], ["d11", "a1x", "a1"]),
        (["[]x]", "[[:digit:]]"], ["]", "x", "7"], ["y"]),
        ([r"\#a", r"\!b", r"c\*", r"[\]]"], ["#a", "!b", "c*", "]"], ["a", "b", "cx"]),
        (["a  ", r"b\ ", "c d"], ["a", "b ", "c d"], ["a  ", "b", "c"]),
        (["# a comment", "", "   ", "/", "!"], [], ["# a comment", "a"]),
        (["[a", "b\\", "[[:nothing:]]"], [], ["[a", "a", "b", "b\\", "n"]),
        (["*", "!keep", "!*/"], ["a", "b/c"], ["keep", "b/keep"]),
        (["first\nsecond\r\n# third"], ["first", "second"], ["third"]),
        (["?", "é?"], ["a", "éa"], ["é", "éé"]),
        (["caf\udce9"], ["caf\udce9"], ["café"]),
        ([], [], ["a"]),
    ],
)
def test_patterns(patterns: list[str], out: list[str], kept: list[str]) -> None:
    """Each form of pattern leaves out these and keeps those."""
    rules = Ignore(patterns)
    assert [path for path in out + kept if rules.ignores(path)] == out


def test_nothing_comes_back_from_a_folder_that_is_left_out() -> None:
    """A file can't be taken back if its folder is out; if only what is in the folder is out, it can."""
    assert Ignore(["docs/", "!docs/keep.md"]).ignores("docs/keep.md")
    assert Ignore(["docs", "!docs/a/keep.md"]).ignores("docs/a/keep.md")
    assert not Ignore(["docs/*", "!docs/keep.md"]).ignores("docs/keep.md")


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/*a*" * 20 + "/b", "**/a/" * 20 + "b", "[a-z]*" * 40 + "!"])
def test_no_pattern_is_slow(pattern: str) -> None:
    """Patterns made to be tried in very many ways are decided at once."""
    rules = Ignore([pattern])
    start = time.process_time()
    assert not rules.ignores("a" * 2000 + "c")
    assert not rules.ignores("a/" * 1000 + "c")
    assert time.process_time() - start < 5


def test_a_path_of_many_folders() -> None:
    """Depth is no matter."""
    assert Ignore(["x"]).ignores("a/" * 5000 + "x")
