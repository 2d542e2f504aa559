"""A SyncStore in ConfigMaps: one record per unit, for who has no operator. The units themselves are its owner's.

A record holds what a new process needs to carry on (inventory, baseline, operation, what was reported of drift) and
nothing that a look at the cluster tells: it changes when a revision comes in, not when a pod gets ready. Every write is
onto the state that this process read at first or has written since. Should another have written in between, its record
stands and this process may write no more (RecordTaken): of two at the same time, the one that wrote last goes on. What
was sent and not answered may have been written all the same: such a record is our own.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from starling.engine.errors import EngineError, RecordTaken
from starling.engine.inventory import pack, unpack
from starling.engine.order import NAMESPACE
from starling.engine.tasks import Action, Task
from starling.engine.unit import Drift, Operation, StoredUnit, Unit, UnitStatus
from starling.errors import InputError
from starling.kube import (
    Body,
    Client,
    Conflict,
    DeleteOptions,
    NotFound,
    Ref,
    Resource,
    Selection,
)
from starling.objects import ObjectKey, digest

__all__ = ["RECORD_LABEL", "UNIT_ANNOTATION", "ConfigMapStore", "record_name"]

RECORD_LABEL: Final = "starling.dev/record"
UNIT_ANNOTATION: Final = "starling.dev/unit"
LARGEST: Final = 900_000
"""Of the 1,048,576 bytes that a ConfigMap may hold."""

_CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
_TRIES: Final = 5


class _AnothersRecord(EngineError):
    """Where a unit's record would be there is that of another."""


class _State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What is kept of a status besides its inventory."""

    revision: str = ""
    applied_revision: str = ""
    baseline: str = ""
    operation: Operation | None = None
    drift: tuple[Drift, ...] = ()
    shared: tuple[Drift, ...] = ()


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    """A record as this process knows it; `status` is what was last written of it and answered."""

    status: UnitStatus
    data: Mapping[str, str]
    version: str


class ConfigMapStore:
    """The units that it is given, and their records in one namespace. Mutable: it knows its units and their records.

    Units of other processes are known as far as there is a record of them: nobody takes their objects by mistake.
    Of a unit's record it knows what it first found, None if there was none, or has written since; and the digests of
    what it has sent since then, which may be there or come yet.
    """

    def __init__(self, client: Client, namespace: str, units: Iterable[Unit] = ()) -> None:
        self._client = client
        self._namespace = namespace
        self._units = {unit.id: unit for unit in units}
        self._records: dict[str, _Record | None] = {}
        self._sent: defaultdict[str, set[str]] = defaultdict(set)
        self._changed = asyncio.Queue[str]()

    def put(self, unit: Unit) -> None:
        """Have a unit from now on, or have it otherwise than before."""
        self._units[unit.id] = unit
        self._changed.put_nowait(unit.id)

    async def records(self) -> Sequence[str]:
        """The ids of all units that have a record in the namespace, whoever's they are."""
        listing = await self._client.list(_CONFIG_MAPS, _ConfigMap, Selection(self._namespace, labels=RECORD_LABEL))
        return sorted(each.metadata.annotations.get(UNIT_ANNOTATION, "") for each in listing.items)

    async def list(self) -> Sequence[str]:
        """The ids of the units it was given."""
        return list(self._units)

    async def get(self, unit_id: str) -> StoredUnit | None:
        """One unit with what its record says; another process' unit is held, and None if it has no record."""
        unit = self._units.get(unit_id)
        try:
            found = await self._read(unit_id)
        except _AnothersRecord:
            if unit is not None:
                raise
            return None
        if unit is not None:
            self._records.setdefault(unit_id, found)  # what we know stays: our next write finds out whose it is now
            return StoredUnit(unit, found.status if found is not None else UnitStatus())
        if found is None:
            return None
        return StoredUnit(Unit(id=unit_id, cluster="", held="another process has it"), found.status)

    async def watch(self) -> AsyncIterator[str]:
        """The ids of units as they are `put`."""
        while True:
            yield await self._changed.get()

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        """Write down what has changed of the record, if anything has; that of a removed unit is deleted."""
        if status.removed:
            await self._delete(unit_id)
            return
        known, data = self._records.get(unit_id), _data(status)
        if known is not None and known.data == data and not self._sent[unit_id]:
            return
        size = sum(len(name) + len(text.encode()) for name, text in data.items())
        if size > LARGEST:
            raise EngineError(
                f"the record of {unit_id} would be {size:,} bytes for {len(status.inventory):,} objects, more than the "
                f"{LARGEST:,} that fit into a ConfigMap",
                hint="make it several units",
            )
        self._knows(unit_id, _Record(status, data, await self._write(unit_id, known, data)))

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """Write down how far its operation is."""
        known = self._records.get(unit_id)
        status = known.status if known is not None else UnitStatus()
        await self.set_status(unit_id, msgspec.structs.replace(status, operation=operation))

    async def check(self, unit: Unit, tasks: Sequence[Task]) -> None:
        """Raise if another process has written the unit's record, or pruning would take that along; before a sync.

        For `Engine.on_before_sync`, at the price of a look at the record. Two that begin in the same moment are told
        apart by their writes all the same.
        """
        if not unit.deleting and any(self._holds_records(task) for task in tasks):
            raise EngineError(
                f"Namespace {self._namespace} is no longer in the manifests, but the record of {unit.id} is in it",
                hint="put it back; or, if it is to go, delete the unit",
            )
        if unit.id in self._records:
            await self._ours(unit.id)

    def _holds_records(self, task: Task) -> bool:
        return task.action is Action.PRUNE and task.key == ObjectKey(*NAMESPACE, "", self._namespace)

    def _ref(self, unit_id: str) -> Ref:
        return _CONFIG_MAPS.ref(record_name(unit_id), self._namespace)

    async def _read(self, unit_id: str) -> _Record | None:
        ref = self._ref(unit_id)
        try:
            found = (await self._client.get(ref)).decode(_ConfigMap)
        except NotFound:
            return None
        whose = found.metadata.annotations.get(UNIT_ANNOTATION, "")
        if whose != unit_id:
            raise _AnothersRecord(
                f"{ref} isn't the record of {unit_id}" + (f" but of {whose}" if whose else ""),
                hint="give the unit another name, or its record another namespace",
            )
        data = found.data or {}
        return _Record(_status(data, ref), data, found.metadata.resource_version)

    async def _write(self, unit_id: str, known: _Record | None, data: Mapping[str, str]) -> str:
        """The version that it is by now: what someone else wrote into the record is never overwritten."""
        for _ in range(_TRIES):
            self._sent[unit_id].add(digest(data))
            try:
                body = await (self._create(unit_id, data) if known is None else self._update(unit_id, known, data))
            except NotFound:
                known = None  # someone deleted it
            except Conflict:
                known = await self._ours(unit_id)
            else:
                return body.decode(_ConfigMap).metadata.resource_version
        raise self._lost(unit_id)

    async def _create(self, unit_id: str, data: Mapping[str, str]) -> Body:
        ref = self._ref(unit_id)
        metadata = {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": {RECORD_LABEL: "unit"},
            "annotations": {UNIT_ANNOTATION: unit_id},
        }
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        try:
            return await self._client.create(_CONFIG_MAPS, content, namespace=self._namespace)
        except NotFound as error:
            hint = f"kubectl create namespace {ref.namespace}; or keep the record in another, with -n"
            raise EngineError(
                f"there is no namespace {ref.namespace} for the record of {unit_id}", hint=hint
            ) from error

    async def _update(self, unit_id: str, known: _Record, data: Mapping[str, str]) -> Body:
        patch = {"metadata": {"resourceVersion": known.version}, "data": data}
        return await self._client.merge_patch(self._ref(unit_id), patch)

    async def _delete(self, unit_id: str) -> None:
        known = self._records.get(unit_id)
        if known is None and self._sent[unit_id]:
            known = await self._ours(unit_id)
        for _ in range(_TRIES):
            if known is None:
                break
            try:
                await self._client.delete(self._ref(unit_id), DeleteOptions(resource_version=known.version))
            except NotFound:
                break
            except Conflict:
                known = await self._ours(unit_id)
            else:
                break
        else:
            raise self._lost(unit_id)
        self._knows(unit_id, None)

    async def _ours(self, unit_id: str) -> _Record | None:
        """The record as it is now, if what we know or have sent is in it: someone may have labelled or deleted it."""
        known, found = self._records.get(unit_id), await self._read(unit_id)
        if found is None:
            return None
        if (known is None or found.data != known.data) and digest(found.data) not in self._sent[unit_id]:
            raise self._lost(unit_id)
        if known is None or found.version != known.version:
            # Whoever had no answer takes the status before it for the one that is written.
            self._knows(unit_id, replace(found, status=known.status if known is not None else UnitStatus()))
        return found

    def _knows(self, unit_id: str, record: _Record | None) -> None:
        """Go on from a new state: what was sent onto an older one can't come any more."""
        self._records[unit_id] = record
        self._sent.pop(unit_id, None)

    def _lost(self, unit_id: str) -> RecordTaken:
        return RecordTaken(
            f"another process writes the record of {unit_id}, {self._ref(unit_id)}",
            hint="it goes on, and this one stops; run it again when the other is done",
        )


def record_name(unit_id: str) -> str:
    """The name of a unit's ConfigMap."""
    _, _, name = unit_id.partition("@")[0].rpartition("/")[2].partition(".")
    return f"starling-{name}"


def _data(status: UnitStatus) -> dict[str, str]:
    kept = _State(
        revision=status.revision,
        applied_revision=status.applied_revision,
        baseline=status.baseline,
        operation=status.operation,
        drift=status.drift,
        shared=status.shared,
    )
    return {
        "inventory": "".join(f"{line}\n" for line in pack(status.inventory)),
        "state": msgspec.json.format(msgspec.json.encode(kept)).decode(),
    }


def _status(data: Mapping[str, str], ref: Ref) -> UnitStatus:
    try:
        kept = msgspec.json.decode(data.get("state", "{}"), type=_State)
        inventory = unpack(data.get("inventory", "").splitlines())
    except (msgspec.DecodeError, InputError) as error:
        raise EngineError(
            f"{ref} isn't a record that we wrote: {error}",
            hint="put it back as it was; without it, nobody knows which objects are the unit's",
        ) from error
    return UnitStatus(
        revision=kept.revision,
        applied_revision=kept.applied_revision,
        baseline=kept.baseline,
        operation=kept.operation,
        drift=kept.drift,
        shared=kept.shared,
        inventory=inventory,
    )
