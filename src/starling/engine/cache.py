"""What is known of a cluster's objects that units own: some hundred bytes each.

    watch ──┐
            ├──► ClusterCache.see / vanish ──► Record ──► Change, told to whoever listens
    our own applies ─► ClusterCache.applied

A Record holds two kinds of facts: what the object is like now (uid, resourceVersion, the digest of our entry in its
managedFields, readiness), and how our last apply left it (the digest of the manifest, and of our entry then). Drift is
when the two digests of our entry differ. Nothing here does I/O.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from starling.engine.annotations import kept, sync_wave
from starling.engine.fields import ManagedFields, entry_digest, own_entry
from starling.engine.health import Health, Readiness, Rules, complaint
from starling.engine.ownership import owner
from starling.engine.uids import Uid, packed, text
from starling.kube import Resource
from starling.objects import ObjectKey

__all__ = ["Change", "ClusterCache", "KindMemory", "Record", "Seen", "SeenMetadata"]


class _OwnerReference(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class SeenMetadata(msgspec.Struct, rename="camel"):
    """The metadata that ownership, drift and health need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_OwnerReference] | None = None
    managed_fields: list[ManagedFields] | None = None


class Seen(msgspec.Struct):
    """An object as a watch or an answer shows it: no more of it than we need."""

    metadata: SeenMetadata
    spec: Any = None
    status: Any = None

    def for_health(self, resource: Resource) -> dict[str, Any]:
        """The object as health rules read it."""
        meta = self.metadata
        metadata = {
            "name": meta.name,
            "namespace": meta.namespace,
            "generation": meta.generation,
            "creationTimestamp": meta.creation_timestamp,
            "deletionTimestamp": meta.deletion_timestamp,
            "annotations": meta.annotations,
        }
        return {
            "apiVersion": resource.gvk.api_version,
            "kind": resource.kind,
            "metadata": {name: value for name, value in metadata.items() if value is not None},
            **({} if self.spec is None else {"spec": self.spec}),
            **({} if self.status is None else {"status": self.status}),
        }


class Record(msgspec.Struct, gc=False):
    """What is kept of one object. Mutable, by the cache alone.

    Without a uid, which is packed, it isn't there: wanted, and missing. `entry` is the digest of our managed fields,
    `expected` as our last apply left them (0: not known), `manifest` the short digest of what we applied ("": not
    known). `once`: it was to be made, not to be kept (generateName). `marked`: both our marks are on it.
    """

    key: ObjectKey
    owner: str
    uid: Uid = ""
    version: int = 0
    entry: int = 0
    expected: int = 0
    manifest: str = ""
    readiness: Readiness = Readiness.MISSING
    message: str = ""
    wave: int = 0
    controlled: bool = False
    kept: bool = False
    once: bool = False
    marked: bool = True

    @property
    def live(self) -> bool:
        """Whether the object is there."""
        return bool(self.uid)

    @property
    def drifted(self) -> bool:
        """Whether it is known not to be as our last apply left it."""
        return bool(self.expected) and (not self.uid or self.entry != self.expected)


class Change(msgspec.Struct, frozen=True):
    """Something happened to an object that a unit owns; gone for good if it isn't among the records any more."""

    owner: str
    key: ObjectKey
    readiness: Readiness
    drifted: bool
    message: str = ""


class ClusterCache:
    """The records of one cluster. Mutable; changes are told as they are made."""

    def __init__(self, label_key: str, assess: Rules, now: Callable[[], datetime]) -> None:
        self.label_key = label_key
        self.assess = assess
        self._now = now
        self._records: dict[ObjectKey, Record] = {}
        self._by_owner: dict[str, set[ObjectKey]] = {}
        self._writing: set[ObjectKey] = set()
        self._evidence: dict[ObjectKey, tuple[ManagedFields, ...]] = {}
        self._listeners: list[Callable[[Change], None]] = []

    def __len__(self) -> int:
        return len(self._records)

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Have every change told from now on."""
        self._listeners.append(listener)

    @property
    def records(self) -> Mapping[ObjectKey, Record]:
        """All of them."""
        return self._records

    def get(self, key: ObjectKey) -> Record | None:
        """What is known of one object."""
        return self._records.get(key)

    def owned(self, unit_id: str) -> dict[ObjectKey, Record]:
        """All that a unit owns, missing objects included."""
        return {key: self._records[key] for key in self._by_owner.get(unit_id, ())}

    def of_kind(self, group: str, kind: str) -> Iterable[Record]:
        """All records of one kind."""
        return (record for key, record in self._records.items() if key.kind == kind and key.group == group)

    def evidence(self, key: ObjectKey) -> tuple[ManagedFields, ...]:
        """The managed fields of an object when its drift was seen: who did it is read from there."""
        return self._evidence.get(key, ())

    def expect(self, unit_id: str, inventory: Mapping[ObjectKey, str], *, as_left: bool) -> None:
        """Take over a unit's inventory; `as_left`: every object is just as our last apply left it."""
        for key, manifest in inventory.items():
            record = self._records.get(key)
            if record is None:
                self._add(Record(key, unit_id, manifest=manifest))
            elif record.owner == unit_id:
                record.manifest = manifest
                record.expected = record.entry if as_left else 0

    def see(self, resource: Resource, seen: Seen) -> Record | None:
        """Learn an object's state; None if no unit owns it. Older states than the one known are passed over."""
        key = _key(resource, seen)
        record = self._records.get(key)
        version = int(seen.metadata.resource_version or 0)
        if record is not None and version < record.version:
            return record
        owned_by = owner(key, seen.metadata.labels or {}, seen.metadata.annotations or {}, self.label_key)
        marked = bool(owned_by)
        if not marked and record is not None and record.live:
            if record.uid != packed(seen.metadata.uid):
                self.gone(key, record.uid, version)  # a stranger's object stands in its place
                return None
            owned_by = record.owner  # someone took our marks off: that is drift, not another owner
        if not owned_by:
            return None
        if record is None or record.owner != owned_by:
            record = self._take(key, owned_by)
        record.marked = marked
        self._update(record, resource, seen, entry_digest(own_entry(seen.metadata.managed_fields or ())))
        self._tell(record)
        return record

    def writing(self, key: ObjectKey) -> None:
        """An apply of ours is under way: until its answer is here, a change of our entry may be our own doing."""
        self._writing.add(key)

    def written(self, key: ObjectKey) -> None:
        """The apply has ended, one way or another."""
        self._writing.discard(key)
        if (record := self._records.get(key)) is not None and record.drifted:
            self._tell(record)
        else:
            self._evidence.pop(key, None)

    def applied(self, resource: Resource, seen: Seen, unit_id: str, manifest: str) -> Record:
        """Learn from the answer to our own apply: this is how the object is when it is as it should be."""
        key = _key(resource, seen)
        record = self._records.get(key)
        if record is None or record.owner != unit_id:
            record = self._take(key, unit_id)
        record.manifest, record.marked = manifest, True
        record.expected = entry = entry_digest(own_entry(seen.metadata.managed_fields or ()))
        if int(seen.metadata.resource_version) > record.version:  # else the watch was quicker than the answer
            self._update(record, resource, seen, entry)
        self._tell(record)
        return record

    def gone(self, key: ObjectKey, uid: Uid, version: int = 0) -> None:
        """Learn that an object isn't there any more, since that version if it is known; unless another is by now."""
        record = self._records.get(key)
        if record is None or record.uid not in ("", packed(uid)):
            return
        record.uid, record.entry, record.version = "", 0, version
        record.readiness, record.message = Readiness.MISSING, ""
        self._evidence.pop(key, None)
        if record.manifest:
            self._tell(record)
        else:
            self.drop(key)

    def forget_versions(self, group: str, kind: str) -> None:
        """Take whatever comes next for newer: the cluster was restored, and counts from an earlier version on."""
        for record in self.of_kind(group, kind):
            record.version = 0

    def drop(self, key: ObjectKey) -> None:
        """Forget an object that its unit doesn't want any more."""
        record = self._records.pop(key, None)
        if record is not None:
            self._unlist(record)
            self._evidence.pop(key, None)
            self._tell(record)

    def doubt(self, keys: Iterable[ObjectKey | None]) -> None:
        """Take these no longer for what our last apply made of them: they have to be applied again."""
        for key in keys:
            if key is not None and (record := self._records.get(key)) is not None:
                record.expected = 0

    def made_once(self, key: ObjectKey) -> None:
        """Note that an object is only to be made: that it goes away, as finished Jobs do, is no drift."""
        if (record := self._records.get(key)) is not None:
            record.once = True

    def disown(self, key: ObjectKey) -> None:
        """Note that its unit no longer renders an object that stays: another may take it.

        One that bears no marks is nobody's from now on.
        """
        if (record := self._records.get(key)) is not None:
            record.manifest, record.expected = "", 0
            if not record.live or not record.marked:
                self.drop(key)

    def _take(self, key: ObjectKey, unit_id: str) -> Record:
        """A new record under a new owner; the old owner is told that it lost the object."""
        if (before := self._records.get(key)) is not None:
            self._unlist(before)
            self._tell(before)
        return self._add(Record(key, unit_id))

    def _add(self, record: Record) -> Record:
        keys = self._by_owner.get(record.owner)
        if keys is None:
            keys = self._by_owner[record.owner] = set()
        elif keys:
            record.owner = self._records[next(iter(keys))].owner  # one text for all of a unit's records
        keys.add(record.key)
        self._records[record.key] = record
        return record

    def _unlist(self, record: Record) -> None:
        keys = self._by_owner[record.owner]
        keys.discard(record.key)
        if not keys:
            del self._by_owner[record.owner]

    def _update(self, record: Record, resource: Resource, seen: Seen, entry: int) -> None:
        meta = seen.metadata
        managed = meta.managed_fields or ()
        record.uid, record.version = packed(meta.uid), int(meta.resource_version)
        record.entry = record.expected if entry == record.expected else entry  # one number in memory, as a rule
        obj = seen.for_health(resource)
        health = self._health(obj)
        record.readiness = health.readiness
        record.message = complaint(obj) if health.readiness is Readiness.CURRENT else health.message
        annotations = meta.annotations or {}
        record.wave = sync_wave(annotations)
        record.kept = kept(annotations)
        record.controlled = any(reference.controller for reference in meta.owner_references or ())
        # While we write, what we will expect isn't known yet: someone may have been quicker than our answer.
        if record.drifted or (len(managed) > 1 and record.key in self._writing and record.entry != record.expected):
            self._evidence[record.key] = tuple(_on_its_own(entry) for entry in managed)
        else:
            self._evidence.pop(record.key, None)

    def _health(self, obj: Mapping[str, Any]) -> Health:
        """An object's health; a rule of someone's that raises gives none, and ends nothing."""
        try:
            return self.assess(obj, self._now())
        except Exception as error:  # noqa: BLE001 - it may raise anything
            return Health(Readiness.UNKNOWN, f"the rule for its health failed: {type(error).__name__}: {error}")

    def _tell(self, record: Record) -> None:
        drifted = record.drifted and record.key not in self._writing
        change = Change(record.owner, record.key, record.readiness, drifted, record.message)
        for listener in self._listeners:
            listener(change)


class KindMemory:
    """The cache as the memory of one kind's watch, so that the watch needs none of its own."""

    def __init__(self, cache: ClusterCache, resource: Resource) -> None:
        self._cache = cache
        self._resource = resource

    def known(self) -> Iterable[tuple[str, str]]:
        """Every object of the kind that is there."""
        records = self._cache.of_kind(self._resource.group, self._resource.kind)
        return [(record.key.namespace, record.key.name) for record in records if record.live]

    def state(self, namespace: str, name: str) -> tuple[str, str] | None:
        """One object's uid and resourceVersion."""
        record = self._cache.get(ObjectKey(self._resource.group, self._resource.kind, namespace, name))
        return (text(record.uid), str(record.version)) if record is not None and record.live else None

    def learn(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """Nothing: the cache learns by the event."""

    def forget(self, namespace: str, name: str) -> None:
        """Nothing: the cache learns by the event."""


def _key(resource: Resource, seen: Seen) -> ObjectKey:
    return ObjectKey(resource.group, resource.kind, sys.intern(seen.metadata.namespace), seen.metadata.name)


def _on_its_own(entry: ManagedFields) -> ManagedFields:
    """The entry without the whole answer that it is a part of."""
    return msgspec.structs.replace(entry, fields_v1=entry.fields_v1.copy())
