"""One object applied: its ignored fields settled, its earlier managers' fields taken over, replaced if it must be."""

from typing import Any

import msgspec

from starling.engine.adoption import adopt
from starling.engine.annotations import kept
from starling.engine.cache import Record, Seen
from starling.engine.diff import is_immutability, quotes_secret, refused_anew
from starling.engine.errors import NotOurs, Refused
from starling.engine.fields import shared
from starling.engine.ignoring import settle
from starling.engine.order import Tier
from starling.engine.ownership import mark, owner
from starling.engine.prepare import Desired
from starling.engine.prune import Deletion, delete_object
from starling.engine.target import Target
from starling.engine.tasks import Task
from starling.engine.unit import Drift
from starling.errors import StarlingError
from starling.kube import AlreadyExists, ApiError, Body, Conflict, Invalid, NotFound, Ref
from starling.objects import ObjectKey

__all__ = ["Applied", "apply_object", "create_object", "explained", "replaceable", "settled"]

TRIES = 5


class Applied(msgspec.Struct, frozen=True):
    """What an apply did, in a word, and which fields others own along with us; `going`: it has to be made anew."""

    outcome: str
    shared: tuple[Drift, ...] = ()
    going: bool = False


async def apply_object(target: Target, task: Task) -> Applied:
    """Apply a task's object, and have the cache learn what came of it."""
    desired = task.desired
    assert desired is not None
    ref = await _ref(target, desired)
    before = task.record.version if task.record is not None else 0
    first_contact = task.first_contact  # asked now: the record changes when the watch is quicker than the answer
    async with target.writing(desired.key):
        try:
            body, content = await _apply(target, desired, ref)
            seen = body.decode(Seen)
            outcome = "created" if body.created else "unchanged" if before == _version(seen) else "changed"
            met_others = first_contact and not body.created
            if met_others:
                seen = await _adopted(target, ref, content, seen)
        except ApiError as error:
            if not (target.unit.force and replaceable(desired) and is_immutability(error)):
                raise
            return await _replace(target, desired, ref, error)
        target.cache.applied(ref.resource, seen, target.unit.id, desired.digest)
    co_owned = shared(desired.key, content, seen.metadata.managed_fields or ()) if met_others else ()
    return Applied(outcome, co_owned)


async def create_object(target: Target, task: Task) -> str:
    """Create an object whose name we made; one that is there already is from an earlier try."""
    desired = task.desired
    assert desired is not None
    ref = await _ref(target, desired)
    async with target.writing(desired.key):
        try:
            body = await target.writer.create(ref.resource, desired.manifest, namespace=ref.namespace)
        except AlreadyExists:
            body = await target.reader.get(ref)
        seen = body.decode(Seen)
        labels, annotations = seen.metadata.labels or {}, seen.metadata.annotations or {}
        if owner(desired.key, labels, annotations, target.cache.label_key) != target.unit.id:
            raise NotOurs(f"{desired.key} is there already, and isn't of {target.unit.id}")
        target.cache.applied(ref.resource, seen, target.unit.id, desired.digest)
    return "created" if body.created else "unchanged"


def replaceable(desired: Desired) -> bool:
    """Whether force may delete and recreate an object: not where all else in it, or of its kind, goes along."""
    return desired.tier > Tier.DEFINITION


def explained(error: ApiError, desired: Desired) -> StarlingError:
    """The refusal with the way out, where we know one that the server doesn't say, and without what is secret."""
    words, hint = error.message, error.hint
    if is_immutability(error) and not replaceable(desired):
        hint = "keep the field as it is; force doesn't recreate what everything in it, or of its kind, would go with"
    elif is_immutability(error):
        hint = "force deletes and recreates the object; or keep the field as it is"
    elif "duplicate entries for key" in words:
        hint = (
            "two items of that list have the same key, which kubectl apply lets through and server-side apply doesn't: "
            "remove one from the manifest, or from the live object with kubectl edit"
        )
    if quotes_secret(words, desired.manifest.content):
        words = f"{error.action}: refused, in words that quote the Secret and so aren't repeated"
    return error if (words, hint) == (error.message, error.hint) else Refused(words, hint=hint)


async def _ref(target: Target, desired: Desired) -> Ref:
    if desired.resource is not None:
        return desired.resource.ref(desired.key.name, desired.key.namespace)
    return await target.ref(desired.manifest.gvk, desired.key)


async def _apply(target: Target, desired: Desired, ref: Ref) -> tuple[Body, dict[str, Any]]:
    """Apply an object, and what was applied: ignored fields are as they were in the cluster.

    Only who ignores some pays for the look, and for looking again when someone wrote in between.
    """
    if not target.settings.ignored(target.unit, desired.key):
        content = desired.manifest.content
        return await target.writer.apply(ref, content), content
    for _ in range(TRIES - 1):
        content, version = await settled(target, desired, ref)
        metadata = {**content["metadata"], **({"resourceVersion": version} if version else {})}
        try:
            return await target.writer.apply(ref, {**content, "metadata": metadata}), content
        except Conflict:
            continue
    content, _ = await settled(target, desired, ref)
    return await target.writer.apply(ref, content), content


async def settled(target: Target, desired: Desired, ref: Ref) -> tuple[dict[str, Any], str]:
    """The content with ignored fields as they are, and the version of the object that was looked at for that."""
    content = desired.manifest.content
    if not (pointers := target.settings.ignored(target.unit, desired.key)):
        return content, ""
    try:
        body = await target.reader.get(ref)
    except NotFound:
        return content, ""
    meta = body.decode(Seen).metadata
    as_they_are = settle(content, body.json(), meta.managed_fields or (), pointers)
    return mark(as_they_are, target.unit.id, desired.key, target.cache.label_key), meta.resource_version


async def _adopted(target: Target, ref: Ref, content: dict[str, Any], seen: Seen) -> Seen:
    """Take over the fields of earlier managers, so that what git drops later really goes."""
    for attempt in range(TRIES):
        adoption = adopt(seen.metadata.managed_fields or ())
        if adoption is None:
            return seen
        try:
            seen = (await target.writer.json_patch(ref, adoption.operations)).decode(Seen)
        except (Conflict, Invalid):  # someone wrote in between: what they left is in the next answer
            if attempt + 1 == TRIES:
                raise
        else:
            if not adoption.beyond:
                continue
        seen = (await target.writer.apply(ref, content)).decode(Seen)
    return seen


async def _replace(target: Target, desired: Desired, ref: Ref, refusal: ApiError) -> Applied:
    """Delete and recreate; if the old one takes its time to go, the plan waits for it and comes back."""
    if words := await refused_anew(target.writer, ref, desired.manifest.content):
        raise Refused(
            f"{explained(refusal, desired).message}; it isn't deleted, for it couldn't be made anew: {words}",
            hint="mend the manifest; should only the old object be in the way, delete that",
        )
    record = target.cache.get(desired.key)
    known = record is not None and record.live
    old = record if known else await _nobodys(target, ref, desired.key)
    match await delete_object(target, ref, old, _is_kept):
        case Deletion.LEFT:
            message = explained(refusal, desired).message
            raise Refused(message, hint="force doesn't delete it, for it is marked to be kept, or another's")
        case Deletion.GOING if known:
            return Applied("deleted, to be made anew", going=True)
        case Deletion.GOING:  # no watch of ours tells when it goes
            raise Refused(f"{desired.key} is being deleted, and will be made anew", hint="does a finalizer hold it?")
        case Deletion.GONE:
            body: Body = await target.writer.apply(ref, desired.manifest.content)
            target.cache.applied(ref.resource, body.decode(Seen), target.unit.id, desired.digest)
            return Applied("replaced")


def _is_kept(record: Record) -> bool:
    return record.kept


async def _nobodys(target: Target, ref: Ref, key: ObjectKey) -> Record:
    """A record, of our own use only, of an object that no watch of ours tells of: nobody's, as a rule."""
    meta = (await target.reader.get(ref)).decode(Seen).metadata
    annotations = meta.annotations or {}
    owned_by = owner(key, meta.labels, annotations, target.cache.label_key) or target.unit.id
    return Record(key, owned_by, uid=meta.uid, version=int(meta.resource_version), kept=kept(annotations))


def _version(seen: Seen) -> int:
    return int(seen.metadata.resource_version)
