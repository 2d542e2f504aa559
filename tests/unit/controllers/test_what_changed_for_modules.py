"""Which Modules are looked at when a cluster's ProxyAssemblage changes."""

import msgspec

from starling.controllers.views import EntryView, Proxy, ProxyMeta, ProxySpec, ProxyStatus, StateView, changed_names


def proxy(*, observed: int = 1, assemblage: str = "uid", **states: str) -> Proxy:
    """A proxy with an entry for each Module, and what the cluster says of it."""
    return Proxy(
        metadata=ProxyMeta(name="c", namespace="n", generation=1),
        spec=ProxySpec(adopted="uid", syncs=tuple(EntryView(name=name, target="t") for name in states)),
        status=ProxyStatus(
            assemblage=assemblage,
            observed=observed,
            syncs=tuple(StateView(name=name, target="t", state=state) for name, state in states.items()),
        ),
    )


def test_only_those_whose_entry_or_state_changed() -> None:
    """A state that is another concerns that Module alone."""
    before, after = proxy(a="updating", b="succeeded"), proxy(a="succeeded", b="succeeded")
    assert changed_names(before, after) == {"a"}
    assert changed_names(before, before) == set()


def test_entries_that_come_and_go() -> None:
    """An entry that is new, gone or moved concerns its Module."""
    before, after = proxy(a="succeeded"), proxy(a="succeeded", b="updating")
    assert changed_names(before, after) == changed_names(after, before) == {"b"}
    moved = ProxySpec(adopted="uid", syncs=(EntryView(name="a", target="other"),))
    assert changed_names(before, msgspec.structs.replace(before, spec=moved)) == {"a"}


def test_what_concerns_all() -> None:
    """A cluster that is found or lost concerns every Module there; an acknowledgement those that wait for it."""
    before = proxy(observed=0, a="succeeded", b="succeeded")
    assert changed_names(before, proxy(a="succeeded", b="succeeded")) == set()
    assert changed_names(None, before) == changed_names(before, None) == {"a", "b"}
    assert changed_names(before, proxy(observed=0, assemblage="new", a="succeeded", b="succeeded")) == {"a", "b"}
