"""A listing that was changed here and there is the listing of the changed tree, and refused for the same reasons."""

from hypothesis import given
from hypothesis import strategies as st

from starling.sources.errors import Refused
from starling.sources.trees import Entry, Limits, amend, check_tree, digest_of, links_of, listing

PARTS = st.sampled_from(["a", "b", "a-b", "a.c", "A", "é", "caf\udce9", ".git", "..", "x y"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
FILES = st.builds(
    lambda mode, content: (mode, digest_of(content), len(content)),
    st.sampled_from(["file", "executable", "link"]),
    st.binary(max_size=2),
)
TREES = st.dictionaries(PATHS, FILES, max_size=12)
LIMITS = Limits(files=12)


def entries(tree: dict[str, tuple[str, str, int]]) -> list[Entry]:
    """A tree's entries."""
    return [Entry(path, mode, digest, size) for path, (mode, digest, size) in tree.items()]  # type: ignore[arg-type]


def allowed(tree: dict[str, tuple[str, str, int]]) -> bool:
    """Whether this can be a tree."""
    try:
        check_tree(entries(tree), LIMITS)
    except Refused:
        return False
    return True


@given(before=TREES.filter(allowed), after=TREES)
def test_what_comes_of_it_is_the_listing_of_the_new_tree(
    before: dict[str, tuple[str, str, int]], after: dict[str, tuple[str, str, int]]
) -> None:
    """With the difference in size; or a refusal, exactly if the new tree would be refused as a whole."""
    old, new = ({each.path: each for each in entries(tree)} for tree in (before, after))
    changes = {path: new.get(path) for path in {*old, *new} if old.get(path) != new.get(path)}
    try:
        content, grown = amend(listing(old.values()), changes, LIMITS)
    except Refused:
        assert not allowed(after)
        return
    assert allowed(after)
    assert content == listing(new.values())
    assert grown == sum(each.size for each in new.values()) - sum(each.size for each in old.values())
    assert sorted(each.path for each in links_of(content)) == sorted(
        each.path for each in new.values() if each.mode == "link"
    )


def test_what_is_gone_already_may_go() -> None:
    """A submodule that went was never in the listing."""
    assert amend(b"", {"vendor": None}, LIMITS) == (b"", 0)
