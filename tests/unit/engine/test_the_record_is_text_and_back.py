"""The unit's record: lines of text that say what it owns, and the baseline."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.inventory import baseline, pack, unpack
from starling.errors import InputError
from starling.objects import ObjectKey

PARTS = st.text("ab:./% \n", max_size=8) | st.text(max_size=8)
NAMES = PARTS.filter(bool)
KEYS = st.builds(ObjectKey, PARTS, NAMES, PARTS, NAMES)
DIGESTS = st.text("0123456789abcdef", max_size=16)
ENTRIES = st.dictionaries(KEYS, st.tuples(DIGESTS, st.integers(0, 2**64)), min_size=1, max_size=6)


@given(inventory=st.dictionaries(KEYS, DIGESTS))
def test_any_inventory_comes_back(inventory: dict[ObjectKey, str]) -> None:
    """Whatever is in the names, one line of printable text per object brings it back, also joined into one text."""
    lines = pack(inventory)
    assert len(lines) == len(inventory)
    assert unpack(lines) == inventory
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert unpack("\n".join(lines).splitlines()) == inventory


@given(inventory=st.dictionaries(KEYS, DIGESTS, max_size=6), order=st.randoms(use_true_random=False))
def test_the_text_depends_on_nothing_else(inventory: dict[ObjectKey, str], order: random.Random) -> None:
    """The same inventory is the same text, so that an unchanged record is not written."""
    items = list(inventory.items())
    order.shuffle(items)
    assert pack(dict(items)) == pack(inventory)


def test_the_form_is_fixed() -> None:
    """Records outlive the version that wrote them."""
    inventory = {
        ObjectKey("apps", "Deployment", "shop", "web"): "0123456789abcdef",
        ObjectKey("", "ConfigMap", "shop", "web-1.x"): "ab",
        ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", "system:a b"): "",
    }
    lines = [
        "/ConfigMap/shop/web-1.x ab",
        "apps/Deployment/shop/web 0123456789abcdef",
        "rbac.authorization.k8s.io/ClusterRole//system:a%20b ",
    ]
    assert pack(inventory) == lines
    assert unpack(lines) == inventory
    # An editor that trims lines does no harm.
    assert unpack(line.strip() for line in lines) == inventory


@pytest.mark.parametrize("line", ["", "web", "apps/Deployment/web ab", "a/b/c/d/e ab", "a//c/d ab", "a/b/c/ ab"])
def test_a_line_that_names_no_object_is_refused(line: str) -> None:
    """Better no sync than one that forgets what it owns."""
    with pytest.raises(InputError, match="names no object"):
        unpack([line])


@given(entries=ENTRIES, order=st.randoms(use_true_random=False))
def test_the_baseline_knows_no_order(entries: dict[ObjectKey, tuple[str, int]], order: random.Random) -> None:
    """Lists come in any order."""
    items = [(key, *rest) for key, rest in entries.items()]
    expected = baseline(items)
    order.shuffle(items)
    assert baseline(iter(items)) == expected
    assert expected.startswith("sha256:")


@given(entries=ENTRIES, data=st.data(), key=KEYS, short=DIGESTS, entry=st.integers(0, 2**64))
def test_the_baseline_sees_every_change(
    entries: dict[ObjectKey, tuple[str, int]], data: st.DataObject, key: ObjectKey, short: str, entry: int
) -> None:
    """An object gone, one added, or one whose manifest or entry is another."""

    def over(changed: dict[ObjectKey, tuple[str, int]]) -> str:
        return baseline((key, *rest) for key, rest in changed.items())

    victim = data.draw(st.sampled_from(sorted(entries)))
    assert over({k: rest for k, rest in entries.items() if k != victim}) != over(entries)
    for changed in ({**entries, key: (short, entry)}, {**entries, victim: (short, entry)}):
        assert (over(changed) == over(entries)) == (changed == entries)
