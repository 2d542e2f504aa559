"""What a tree is, and what none may hold."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.errors import StarlingError
from starling.sources.errors import Refused
from starling.sources.trees import (
    Entry,
    Limits,
    check_links,
    check_tree,
    digest_of,
    listing,
    read_listing,
)

EMPTY = digest_of(b"")


def tree(*paths: str, size: int = 0) -> list[Entry]:
    """Files of one content."""
    return [Entry(path, "file", EMPTY, size) for path in paths]


def test_the_form_is_fixed() -> None:
    """A listing's bytes, and so the digest of a tree, are these for all time; the order is that of the paths' bytes."""
    entries = [
        Entry("run.sh", "executable", digest_of(b"#!/bin/sh\n"), 10),
        Entry("caf\u00e9", "file", EMPTY, 0),
        Entry("caf\udc80", "link", digest_of(b"run.sh"), 6),
        Entry("a b\n", "file", EMPTY, 0),
    ]
    assert listing(entries) == (
        b"file sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 a b\n\0"
        b"link sha256:%b 6 caf\x80\0"
        b"file sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 caf\xc3\xa9\0"
        b"executable sha256:%b 10 run.sh\0"
    ) % tuple(hashlib.sha256(content).hexdigest().encode() for content in (b"run.sh", b"#!/bin/sh\n"))
    assert listing([]) == b""


NAMES = st.text(st.characters(exclude_characters="/\0", max_codepoint=0x10FFFF, exclude_categories=["Cs"]), min_size=1)
PATHS = st.lists(NAMES | st.sampled_from(["a", "b", "caf\udce9"]), min_size=1, max_size=3).map("/".join)
ENTRIES = st.lists(
    st.builds(
        Entry,
        PATHS,
        st.sampled_from(["file", "executable", "link"]),
        st.binary(max_size=2).map(digest_of),
        st.integers(0, 10**12),
    ),
    unique_by=lambda entry: entry.path,
)


@given(entries=ENTRIES, data=st.data())
def test_a_listing_reads_back_and_knows_no_order(entries: list[Entry], data: st.DataObject) -> None:
    """Entries in any order give one listing, which reads back as them; another entry anywhere, another."""
    written = listing(entries)
    assert listing(data.draw(st.permutations(entries))) == written
    assert sorted(map(repr, read_listing(written))) == sorted(map(repr, entries))
    assert listing([*entries, Entry("one/more\x01", "file", EMPTY, 0)]) != written


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a/..",
        "./a",
        "a//b",
        "a/",
        ".",
        "..",
        "a\x00b",
        ".git/config",
        "a/.git",
        ".GIT/x",
        "a/.Git/hooks/post-checkout",
        "git~1/config",
        "GIT~1",
        ".git./x",
        ".git /x",
        ".git::$INDEX_ALLOCATION/x",
        ".g\u200cit/x",
        "\ufeff.git",
        "a\\.git\\config",
        "x/.git\\y",
        ".git. . :a",
        "a" * 256,
        "é" * 128,
        "a/" * 1600 + "b",
        "lone\ud800",
    ],
    ids=lambda path: ascii(path)[:30],
)
def test_paths_that_are_refused(path: str) -> None:
    """What would lead out, or be taken for git's own, or can't be on a disk is refused with its name."""
    with pytest.raises(Refused) as caught:
        check_tree(tree("ordinary/file", path, "z"), Limits())
    assert caught.value.message.startswith((path[:200] or "''", repr(path)))
    with pytest.raises(Refused):
        check_tree(tree(path), Limits())


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        ".github/workflows/a.yaml",
        ".gitmodules",
        "..a",
        "a..",
        "...",
        "git",
        "git~2",
        ".git~",
        "a.git/x",
        "dev-disk-by\\x2dlabel.swap",
        "with space ",
        "tab\t",
        "line\nbreak",
        "caf\udce9",
        "日本/語",
        "a" * 255,
        "-rf",
        "~",
    ],
)
def test_paths_that_are_fine(path: str) -> None:
    """Odd names that are harmless stay."""
    check_tree(tree(path, "ordinary"), Limits())


@given(PATHS)
def test_one_look_at_all_finds_what_a_close_look_finds(path: str) -> None:
    """Whether a path is alone or among others, and whatever it is, the verdict is the same."""

    def refused(*paths: str) -> bool:
        try:
            check_tree(tree(*paths), Limits())
        except Refused:
            return True
        return False

    # A name that isn't ASCII has all of them looked at closely.
    assert refused(path, "\u00e9") == refused(path, "zzzz")


@pytest.mark.parametrize(
    ("paths", "named"),
    [(["a", "b", "a"], "a"), (["a/b", "a"], "a"), (["x/y/z/w", "x/y"], "x/y"), (["a", "a/b/c"], "a")],
)
def test_what_cannot_be_at_once(paths: list[str], named: str) -> None:
    """One path twice, or a file where another needs a folder, is refused; names that differ in case aren't."""
    with pytest.raises(Refused, match=f"^{named} is"):
        check_tree(tree(*paths), Limits())
    check_tree(tree("A", "a", "b/C", "B/c"), Limits())


def test_bombs() -> None:
    """Too many files, one too large, or too much in all is refused, and says which; just as much isn't."""
    limits = Limits(files=3, file_size=10, total_size=25)
    check_tree(tree("a", "b", size=10) + tree("c", size=5), limits)
    with pytest.raises(Refused, match="more than 3 files"):
        check_tree(tree("a", "b", "c", "d"), limits)
    with pytest.raises(Refused, match="large has 11 bytes, more than 10"):
        check_tree(tree("small") + tree("large", size=11), limits)
    with pytest.raises(Refused, match=r"more than 25 bytes in all, up to c"):
        check_tree(tree("a", "b", "c", size=9), limits)


@pytest.mark.parametrize(
    "entry", [("a", "folder", EMPTY, 0), ("a", "file", "sha256:../../x", 0), ("a", "file", EMPTY, -1)]
)
def test_facts_that_no_file_has(entry: tuple[str, str, str, int]) -> None:
    """An unknown mode, a digest that is none and a size below nothing are refused."""
    with pytest.raises(StarlingError, match=r"^a has no"):
        check_tree([Entry(*entry)], Limits())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("links", "bad"),
    [
        ({"a": "/etc/passwd"}, "a"),
        ({"a": ".."}, "a"),
        ({"a": "../x"}, "a"),
        ({"d/a": "../../x"}, "d/a"),
        ({"a": "b/../../x"}, "a"),
        ({"a": "b/..", "b": "c/d"}, None),
        ({"x/up": "..", "a": "x/up/../secret"}, "a"),
        ({"d/e/f": "../..", "a": "d/e/f/.."}, "a"),
        ({"deep/d": "..", "a": "deep/d/deep/d/.."}, "a"),
        ({"a": "deep/b/../..", "deep/b": "../c"}, "a"),
        ({"a": "b", "b": "a"}, "a"),
        ({"a": "a"}, "a"),
        ({"a": "b/c", "b": "."}, None),
        ({"a": "b/../../x", "b": "p/q/r"}, "a"),
        ({"a": ""}, "a"),
        ({"a": "x" * 5000}, "a"),
        ({"a": "x\0y"}, "a"),
        ({"a": "missing", "d/b": "../a", "d/e/c": "../../d/b"}, None),
        ({"a": "./d//e/./f"}, None),
    ],
)
def test_links(links: dict[str, str], bad: str | None) -> None:
    """A link may lead anywhere within its tree, even to nothing; none may lead out, by itself or through others."""
    if bad is None:
        check_links(links)
        return
    with pytest.raises(Refused) as caught:
        check_links(links)
    assert f"the link {bad} " in caught.value.message


def test_links_made_to_be_followed_forever() -> None:
    """Links that multiply each other are refused before much time is spent."""
    bomb = {f"l{n}": "/".join([f"l{n + 1}"] * 500) for n in range(1000)}
    with pytest.raises(Refused):
        check_links(bomb)
