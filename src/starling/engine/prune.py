"""One object deleted, or left without our marks; never another than the one that was meant."""

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from starling.engine.cache import Record, Seen
from starling.engine.ownership import TRACKING, owner
from starling.engine.target import Target
from starling.engine.tasks import Task
from starling.engine.uids import text
from starling.kube import FIELD_MANAGER, Conflict, DeleteOptions, Invalid, NotFound, NotServed, Ref
from starling.objects import ObjectKey

__all__ = ["SPARED", "Deletion", "delete_object", "orphan_object", "prune_object"]

TRIES = 5
ORPHANED: Final = "orphaned"
LEFT: Final = "left"
SPARED: Final = frozenset({ORPHANED, LEFT})
"""What came of an object that is still there."""


class Deletion(enum.Enum):
    """What came of a deletion: a finalizer or a grace period may hold an object; or it may not be deleted any more."""

    GONE = enum.auto()
    GOING = enum.auto()
    LEFT = enum.auto()


async def prune_object(target: Target, task: Task) -> str:
    """Delete a task's object if it is still ours."""
    record = task.record
    assert record is not None
    try:
        ref = await target.preferred_ref(record.key)
    except NotServed as error:
        if error.down:
            raise
        target.cache.gone(record.key, record.uid)  # its CRD went first, and took it along
        return "gone"
    async with target.writing(record.key):
        target.cache.disown(record.key)
        deletion = await delete_object(target, ref, record, _is_spared)
    match deletion:
        case Deletion.GONE:
            return "pruned"
        case Deletion.GOING:
            return "being deleted"
        case Deletion.LEFT:
            return await _let_go(target, task, record.key)


def _is_spared(record: Record) -> bool:
    """Whether an object mustn't be pruned, whatever was so when that was planned."""
    return not record.marked or record.kept or record.controlled


async def _let_go(target: Target, task: Task, key: ObjectKey) -> str:
    """Leave an object that was to be pruned: as another's, as nobody's, or without our marks."""
    current = target.cache.get(key)
    if current is not None and current.owner == target.unit.id and current.marked:
        return await orphan_object(target, task)
    if current is not None and current.owner == target.unit.id:
        target.cache.disown(key)
    return LEFT


async def delete_object(target: Target, ref: Ref, record: Record | None, spared: Callable[[Record], bool]) -> Deletion:
    """Delete the object that the record means, in the state that it knows.

    An object that has changed since is looked at again: it may belong to another by now, or may have to be `spared`.
    """
    for attempt in range(TRIES):
        current = record if attempt == 0 else await _look(target, ref)
        if current is None or not current.live:
            return Deletion.GONE
        if current.owner != target.unit.id or spared(current):
            return Deletion.LEFT
        try:
            options = DeleteOptions(uid=text(current.uid), resource_version=str(current.version))
            body = await target.writer.delete(ref, options)
        except NotFound:
            target.cache.gone(current.key, current.uid)
            return Deletion.GONE
        except Conflict:
            if attempt + 1 == TRIES:
                raise
            continue
        if body.decode(_Deleted).metadata.deletion_timestamp:
            return Deletion.GOING  # the watch tells when it goes
        target.cache.gone(current.key, current.uid)
        return Deletion.GONE
    return Deletion.GOING


async def orphan_object(target: Target, task: Task) -> str:
    """Leave an object in the cluster without our label, annotation and managed fields."""
    record = task.record
    assert record is not None
    try:
        ref = await target.preferred_ref(record.key)
        async with target.writing(record.key):
            ours = await _strip(target, ref, record.key)
    except NotFound as error:
        if isinstance(error, NotServed) and error.down:
            raise
        target.cache.disown(record.key)
        target.cache.gone(record.key, record.uid)
        return "gone"
    if not ours:
        return LEFT
    target.cache.drop(record.key)
    return ORPHANED


async def _strip(target: Target, ref: Ref, key: ObjectKey) -> bool:
    """Take our marks off an object, unless it is another unit's: whether it wasn't."""
    for attempt in range(TRIES):
        seen = (await target.reader.get(ref)).decode(Seen)
        meta = seen.metadata
        if owner(key, meta.labels, meta.annotations, target.cache.label_key) not in ("", target.unit.id):
            return False
        try:
            await target.writer.json_patch(ref, stripping(seen, target.cache.label_key))
        except (Conflict, Invalid):  # it has changed in between
            if attempt + 1 == TRIES:
                raise
        else:
            break
    return True


def stripping(seen: Seen, label_key: str) -> list[dict[str, Any]]:
    """The JSON patch that takes our marks off an object, provided that it hasn't changed."""
    meta = seen.metadata
    entries = meta.managed_fields or ()
    ours = [place for place, entry in enumerate(entries) if entry.manager == FIELD_MANAGER]
    paths = [
        *_without(label_key, meta.labels or {}, "/metadata/labels"),
        *_without(TRACKING, meta.annotations or {}, "/metadata/annotations"),
        *(f"/metadata/managedFields/{place}" for place in reversed(ours)),
    ]
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version}
    removals = [{"op": "remove", "path": path} for path in paths]
    # Of a custom resource an empty list would be taken for none given; this is how all entries are cleared.
    cleared = [{"op": "add", "path": "/metadata/managedFields", "value": [{}]}] if len(ours) == len(entries) else []
    return [same, *removals, *cleared]


def _without(name: str, texts: Mapping[str, str], path: str) -> list[str]:
    """The path to remove. A map that would be empty goes as a whole: custom resources keep it, and it would be ours."""
    if name not in texts:
        return []
    return [path if len(texts) == 1 else f"{path}/{_escaped(name)}"]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


async def _look(target: Target, ref: Ref) -> Record | None:
    """The record of an object after asking the API server."""
    key = ObjectKey(ref.resource.group, ref.resource.kind, ref.namespace, ref.name)
    try:
        seen = (await target.reader.get(ref)).decode(Seen)
    except NotFound:
        if (record := target.cache.get(key)) is not None:
            target.cache.gone(key, record.uid)
        return None
    return target.cache.see(ref.resource, seen)


class _DeletedMetadata(msgspec.Struct, rename="camel", frozen=True):
    deletion_timestamp: str | None = None


class _Deleted(msgspec.Struct):
    """What a deletion is answered with: a Status, or the object if it is still there or just was."""

    metadata: _DeletedMetadata = _DeletedMetadata()
