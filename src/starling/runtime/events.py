"""Kubernetes Events: what happened, told next to the object that it happened to."""

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock, Workqueue
from starling.api import Resource as ApiResource
from starling.errors import StarlingError
from starling.kube import Client, NotFound, Resource
from starling.runtime.leading import micro_time
from starling.runtime.logs import redacted

__all__ = ["Happening", "Ledger", "ObjectReference", "Recorder"]

LOG = logging.getLogger(__name__)

EVENTS = Resource("events.k8s.io", "v1", "Event", "events", namespaced=True)
NAMESPACE_OF_THE_REST = "default"
"""Where events about objects go that are in no namespace."""

SAME_WITHIN = 600.0
SERIES_EVERY = 60.0
NOTE_LIMIT = 1024
WORD_LIMIT = 128


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, resource: ApiResource) -> "ObjectReference":
        """A reference to an object of one of our kinds, in the state that we saw."""
        meta = resource.metadata
        kind = type(resource).__name__
        return cls(resource.api_version, kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


class Happening(msgspec.Struct, frozen=True):
    """One thing that may happen again: the same object, reason and message make it the same."""

    regarding: ObjectReference
    reason: str
    note: str
    warning: bool
    action: str

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two of them one: not in which state the object was."""
        about = self.regarding
        return (about.api_version, about.kind, about.namespace, about.name, about.uid, self.reason, self.note)


@dataclass(slots=True)
class Record:
    """How often something happened, and what of that is written. Mutable."""

    happening: Happening
    name: str
    first: datetime
    last: datetime
    heard_at: float
    count: int = 1
    written_count: int = 0
    written_at: float = 0.0


class Ledger:
    """What happened of late, so that repetitions become a series. Mutable; the decisions of a Recorder, without I/O."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._records: dict[tuple[str, ...], Record] = {}  # who was heard longest ago comes first

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._records)

    def get(self, identity: tuple[str, ...]) -> Record | None:
        """One record, if it is still remembered."""
        return self._records.get(identity)

    def hear(self, happening: Happening, now: datetime, at: float) -> float | None:
        """In how many seconds it is to be written; None: what is written says it, or will."""
        self._forget_old(at)
        identity = happening.identity
        record = self._records.pop(identity, None)
        if record is None:
            name = f"{happening.regarding.name[:200].rstrip('.-')}.{uuid.uuid4().hex[:16]}"
            self._records[identity] = Record(happening, name, now, now, at)
            return 0.0
        self._records[identity] = record
        record.count, record.last, record.heard_at = record.count + 1, now, at
        return max(0.0, record.written_at + SERIES_EVERY - at) if record.written_count else None

    def wrote(self, record: Record, at: float) -> None:
        """What is known of it now is written, or given up."""
        record.written_count, record.written_at = record.count, at

    def _forget_old(self, at: float) -> None:
        while self._records:
            identity = next(iter(self._records))
            if len(self._records) < self._limit and self._records[identity].heard_at + SAME_WITHIN > at:
                return
            del self._records[identity]


class Recorder:
    """Writes Events, one after the other, and never holds anyone up. Mutable: what is to be written, and counters."""

    def __init__(
        self, client: Client, controller: str, instance: str, *, clock: Clock = SYSTEM_CLOCK, limit: int = 1000
    ) -> None:
        self.written = 0
        self.dropped = 0
        self._client = client.once()
        self._controller = controller
        self._instance = _cut(instance, WORD_LIMIT)
        self._clock = clock
        self._limit = limit
        self._ledger = Ledger(10 * limit)
        self._queue = Workqueue[tuple[str, ...]](clock)

    def event(
        self, regarding: ObjectReference, reason: str, message: str, *, warning: bool = False, action: str = "Reconcile"
    ) -> None:
        """Have it told that this happened; when too much is waiting to be written, it isn't, and is counted.

        Needs a running event loop. `reason` and `action` are CamelCase words; the message is cut at 1 KiB.
        """
        if len(self._queue) >= self._limit:
            self.dropped += 1
            return
        note = _cut(redacted(message), NOTE_LIMIT)
        happening = Happening(regarding, _cut(reason, WORD_LIMIT), note, warning, _cut(action, WORD_LIMIT))
        wait = self._ledger.hear(happening, self._clock.now(), self._clock.monotonic())
        if wait == 0:
            self._queue.add(happening.identity)
        elif wait is not None:
            self._queue.add_after(happening.identity, wait)

    async def run(self) -> None:
        """Write until cancelled; what can't be written is dropped and counted."""
        try:
            while True:
                identity = await self._queue.get()
                record = self._ledger.get(identity)
                if record is not None and record.written_count < record.count:
                    await self._write(record)
                self._queue.done(identity)
        finally:
            self._queue.close()

    async def _write(self, record: Record) -> None:
        first = not record.written_count
        self._ledger.wrote(record, self._clock.monotonic())
        try:
            await (self._create(record) if first else self._extend(record))
        except StarlingError as error:
            self.dropped += 1
            LOG.debug("an event (%s) is dropped: %s", record.happening.reason, error)
        else:
            self.written += 1

    async def _extend(self, record: Record) -> None:
        ref = EVENTS.ref(record.name, _namespace(record))
        try:
            await self._client.merge_patch(ref, {"series": _series(record)})
        except NotFound:  # the server keeps them for an hour, or the first couldn't be written
            await self._create(record)

    async def _create(self, record: Record) -> None:
        happening, namespace = record.happening, _namespace(record)
        event: dict[str, Any] = {
            "apiVersion": EVENTS.gvk.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": record.name, "namespace": namespace},
            "eventTime": micro_time(record.first),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": happening.action,
            "reason": happening.reason,
            "regarding": happening.regarding,
            "note": happening.note,
            "type": "Warning" if happening.warning else "Normal",
        }
        if record.count > 1:
            event["series"] = _series(record)
        await self._client.create(EVENTS, event, namespace=namespace)


def _series(record: Record) -> dict[str, Any]:
    return {"count": record.count, "lastObservedTime": micro_time(record.last)}


def _namespace(record: Record) -> str:
    return record.happening.regarding.namespace or NAMESPACE_OF_THE_REST


def _cut(text: str, limit: int) -> str:
    """At most that many bytes of UTF-8, as the API server counts."""
    raw = text.encode(errors="replace")
    return raw.decode() if len(raw) <= limit else raw[: limit - 3].decode(errors="ignore") + "…"
