"""Whose a field is: what `metadata.managedFields` says about an object of ours.

The API server takes a field out of our entry when someone else changes or removes it, and leaves our entry alone when
someone adds a field. So a digest of the entry tells *that* something was taken, `lost` tells what, `attribute` tells
who has it now, and `shared` tells what we own together with others. All are pure; the content they are given is the
one that was applied, after differences that are ignored were settled.

Two things the entries can't tell. Of a map without a schema (a custom resource that keeps unknown fields) whose last
field was removed by hand our entry reads as if we owned the map as a whole: it isn't listed, though the digest changed.
And a list that is empty in the manifest may be owned or not, so it counts as lost only if another owns it as a whole.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import msgspec

from starling.engine.fieldsets import Node, Nodes, below, goes_deeper, item_key, item_steps, parse, readable
from starling.engine.paths import field_path
from starling.engine.unit import Drift
from starling.kube import FIELD_MANAGER
from starling.objects import ObjectKey

__all__ = ["ManagedFields", "Path", "attribute", "entry_digest", "lost", "own_entry", "shared"]

Steps = tuple[str, ...]
_NOT_GONE: Final = sys.maxsize

# What the API server keeps out of every entry.
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_METADATA: Final = frozenset({
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
})  # fmt: skip


class ManagedFields(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """One entry as an API server's answer has it. `fields_v1` stays bytes, a part of that answer, until needed."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str | None = None
    subresource: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"{}")


class Path(msgspec.Struct, frozen=True):
    """The way to a field in the steps of `fieldsV1`; its text is for people (`starling.engine.paths`)."""

    steps: Steps

    def __str__(self) -> str:
        return field_path(readable(self.steps))


def own_entry(entries: Iterable[ManagedFields], manager: str = FIELD_MANAGER) -> ManagedFields | None:
    """The entry of what a manager applied to the object itself; None if there is none."""
    for entry in entries:
        if entry.manager == manager and entry.operation == "Apply" and not entry.subresource:
            return entry
    return None


def entry_digest(entry: ManagedFields | None) -> int:
    """56 bits that change whenever the entry does, the same in every process; 0 for none. Longer ints weigh more."""
    if entry is None:
        return 0
    found = blake2b(entry.fields_v1, digest_size=7)
    found.update(f"\0{entry.time}\0{entry.api_version}".encode())
    return int.from_bytes(found.digest(), "big") or 1


def lost(content: Mapping[str, Any], entry: ManagedFields | None) -> tuple[Path, ...]:
    """Which fields of a manifest are no longer in our entry; a subtree that is gone as a whole is one path."""
    reading = _Reading.of(content, entry, ())
    return reading.summary(leaf for leaf in reading.leaves if leaf.is_lost)


def attribute(
    key: ObjectKey, content: Mapping[str, Any], entries: Sequence[ManagedFields], manager: str = FIELD_MANAGER
) -> tuple[Drift, ...]:
    """Who has the fields that we lost: a Drift per manager, and one without a manager for what nobody owns.

    A field is listed with each of its owners, since an entry's time is the owner's last write of any field. What others
    added to the object isn't in it.
    """
    reading = _Reading.of(content, own_entry(entries, manager), entries)
    taken = [leaf for leaf in reading.leaves if leaf.is_lost]
    removed = reading.summary(leaf for leaf in taken if not leaf.owners)
    nobody = (Drift(key, tuple(map(str, removed))),) if removed else ()
    return reading.by_manager(key, taken) + nobody


def shared(
    key: ObjectKey, content: Mapping[str, Any], entries: Sequence[ManagedFields], manager: str = FIELD_MANAGER
) -> tuple[Drift, ...]:
    """Which fields of ours others own too, by manager: removing one from git won't remove it from the object."""
    reading = _Reading.of(content, own_entry(entries, manager), entries)
    return reading.by_manager(key, [leaf for leaf in reading.leaves if leaf.is_ours])


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A part of a manifest that is owned or not owned as one: a scalar, or what the API server takes as a whole."""

    steps: Steps
    value: Any
    nodes: Nodes
    gone: int  # how many steps lead to a list's item that isn't in our entry

    @property
    def is_ours(self) -> bool:
        return _holds(self.nodes[0], self.value)

    @property
    def owners(self) -> list[int]:
        """The places in `nodes` of the others that have it."""
        return [place for place, node in enumerate(self.nodes) if place and _holds(node, self.value)]

    @property
    def is_lost(self) -> bool:
        if self.value == [] and self.gone == _NOT_GONE and not self.owners:
            return False  # it may never have been ours
        return not self.is_ours


@dataclass(frozen=True, slots=True)
class _Reading:
    """A manifest taken apart as our entry and the others' tell; the others in the order of a leaf's nodes."""

    leaves: list[_Leaf]
    others: list[ManagedFields]

    @classmethod
    def of(cls, content: Mapping[str, Any], own: ManagedFields | None, entries: Iterable[ManagedFields]) -> Self:
        version = own.api_version if own else content.get("apiVersion")
        others = sorted((entry for entry in entries if entry is not own), key=lambda e: e.api_version != version)
        nodes = (parse(own.fields_v1) if own else None, *(parse(entry.fields_v1) for entry in others))
        # Another version's schema may tell parts apart that ours takes as a whole.
        current = 1 + sum(entry.api_version == version for entry in others)
        return cls(list(_leaves_of_object(content, nodes, current)), others)

    def by_manager(self, key: ObjectKey, leaves: Sequence[_Leaf]) -> tuple[Drift, ...]:
        """These leaves with those of the others that have them."""
        owned: dict[str, list[_Leaf]] = {}
        times: dict[str, str] = {}
        for leaf in leaves:
            for entry in (self.others[place - 1] for place in leaf.owners):
                owned.setdefault(entry.manager, []).append(leaf)
                times[entry.manager] = max(times.get(entry.manager, ""), entry.time or "")
        return tuple(
            Drift(key, tuple(map(str, self.summary(found))), manager, times[manager])
            for manager, found in owned.items()
        )

    def summary(self, chosen: Iterable[_Leaf]) -> tuple[Path, ...]:
        """The most general paths that cover these leaves and no other."""
        chosen = tuple({leaf.steps: leaf for leaf in chosen}.values())
        covered = Counter(prefix for leaf in self.leaves for prefix in _prefixes(leaf.steps))
        wanted = Counter(prefix for leaf in chosen for prefix in _prefixes(leaf.steps))
        general = {prefix for prefix in wanted if wanted[prefix] == covered[prefix]}
        return tuple(dict.fromkeys(Path(_general(leaf, general, wanted)) for leaf in chosen))


def _prefixes(steps: Steps) -> Iterator[Steps]:
    """The paths that may stand for this one, the most general first. `metadata` itself is nobody's."""
    start = 2 if steps[0] == "f:metadata" else 1
    return (steps[:length] for length in range(start, len(steps) + 1))


def _general(leaf: _Leaf, general: set[Steps], wanted: Counter[Steps]) -> Steps:
    """The path that stands for a leaf: that of several leaves or of a list's item that is gone, or else its own."""
    for prefix in _prefixes(leaf.steps):
        is_item = len(prefix) >= leaf.gone and prefix[-1].startswith("k:")
        if prefix in general and (wanted[prefix] > 1 or is_item):
            return prefix
    return leaf.steps


def _holds(node: Node, value: Any) -> bool:
    """Whether a set holds such a value: itself or, of a map or list, some part."""
    if node is None:
        return False
    if value == []:
        return node.keys() == {"."}  # who owns items of an empty list added them
    if "." in node or isinstance(value, list):
        return True
    return isinstance(value, dict) and any(f"f:{name}" in node for name in value)


def _leaves_of_object(content: Mapping[str, Any], nodes: Nodes, current: int) -> Iterator[_Leaf]:
    walk = _Walk(current)
    for name, value in (content.get("metadata") or {}).items():
        if name not in _METADATA:
            inside = below(below(nodes, "f:metadata"), f"f:{name}")
            yield from walk.leaves(value, inside, ("f:metadata", f"f:{name}"))
    for name, value in content.items():
        inside = below(nodes, f"f:{name}")
        # Where status is a subresource, the API server drops it from what is applied.
        if name not in _IDENTITY and (name != "status" or inside[0] is not None):
            yield from walk.leaves(value, inside, (f"f:{name}",))


@dataclass(frozen=True, slots=True)
class _Walk:
    """Takes values apart as the first `current` nodes tell."""

    current: int

    def leaves(self, value: Any, nodes: Nodes, steps: Steps, gone: int = _NOT_GONE) -> Iterator[_Leaf]:
        """The leaves of a value, without the key fields of list items: those are in the path."""
        parts = list(self._parts(value, nodes, steps[-1]))
        if not parts:
            yield _Leaf(steps, value, nodes, gone)
        for step, part in parts:
            inside, further = below(nodes, step), gone
            # An item that we applied is itself in our entry; if not, what is left there are nulls it had, no values.
            if step.startswith("k:") and "." not in (inside[0] or {}):
                inside, further = (None, *inside[1:]), min(gone, len(steps) + 1)
            yield from self.leaves(part, inside, (*steps, step), further)

    def _parts(self, value: Any, nodes: Nodes, last: str) -> Iterable[tuple[str, Any]]:
        telling = nodes[: self.current]
        if isinstance(value, list) and goes_deeper(telling, value):
            return zip(item_steps(value, telling), value, strict=True)
        # A map of which no entry has anything is named by its fields, though the API server may take it as a whole.
        if not isinstance(value, dict) or (any(node is not None for node in nodes) and not goes_deeper(telling, value)):
            return ()
        keys = item_key(last) if last.startswith("k:") else ()
        return ((f"f:{name}", part) for name, part in value.items() if name not in keys)
