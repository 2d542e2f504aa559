"""One object applied: its ignored fields settled, its earlier managers' fields taken over, replaced if it must be."""

from dataclasses import dataclass
from typing import Any

from starling.engine.adoption import adopt
from starling.engine.cache import Seen
from starling.engine.diff import is_immutability, quotes_secret
from starling.engine.errors import NotOurs, Refused
from starling.engine.fields import shared
from starling.engine.ignoring import settle
from starling.engine.ownership import owner
from starling.engine.plan import Task
from starling.engine.prepare import Desired
from starling.engine.prune import delete_object
from starling.engine.target import Target
from starling.engine.unit import Drift
from starling.errors import StarlingError
from starling.kube import AlreadyExists, ApiError, Body, Conflict, Invalid, NotFound, Ref

__all__ = ["Applied", "apply_object", "create_object"]

ADOPTION_TRIES = 5


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply did, in a word, and which fields others own along with us."""

    outcome: str
    shared: tuple[Drift, ...] = ()


async def apply_object(target: Target, task: Task) -> Applied:
    """Apply a task's object, and have the cache learn what came of it."""
    desired = task.desired
    assert desired is not None
    ref = await _ref(target, desired)
    first_contact = task.record is None or not task.record.manifest
    before = task.record.version if task.record is not None else 0
    async with target.writing(desired.key):
        content = await _settled(target, desired, ref)
        try:
            body = await target.writer.apply(ref, content)
        except ApiError as error:
            if not (target.unit.force and is_immutability(error)):
                raise explained(error, desired) from error
            return await _replace(target, desired, ref)
        seen = body.decode(Seen)
        outcome = "created" if body.created else "unchanged" if before == _version(seen) else "changed"
        if first_contact and not body.created:
            seen = await _adopted(target, ref, content, seen)
        target.cache.applied(ref.resource, seen, target.unit.id, desired.digest)
    co_owned = shared(desired.key, content, seen.metadata.managed_fields or ()) if first_contact else ()
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


def explained(error: ApiError, desired: Desired) -> StarlingError:
    """The refusal with the way out, where we know one that the server doesn't say, and without what is secret."""
    words, hint = error.message, error.hint
    if is_immutability(error):
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


async def _settled(target: Target, desired: Desired, ref: Ref) -> dict[str, Any]:
    """The content with ignored fields as they are in the cluster; only who ignores some pays for the look."""
    content = desired.manifest.content
    pointers = target.settings.ignored(target.unit, desired.key)
    if not pointers:
        return content
    try:
        body = await target.reader.get(ref)
    except NotFound:
        return content
    return settle(content, body.json(), body.decode(Seen).metadata.managed_fields or (), pointers)


async def _adopted(target: Target, ref: Ref, content: dict[str, Any], seen: Seen) -> Seen:
    """Take over the fields of earlier managers, so that what git drops later really goes."""
    for attempt in range(ADOPTION_TRIES):
        adoption = adopt(seen.metadata.managed_fields or ())
        if adoption is None:
            return seen
        try:
            seen = (await target.writer.json_patch(ref, adoption.operations)).decode(Seen)
        except (Conflict, Invalid):  # someone wrote in between: what they left is in the next answer
            if attempt + 1 == ADOPTION_TRIES:
                raise
        else:
            if not adoption.beyond:
                continue
        seen = (await target.writer.apply(ref, content)).decode(Seen)
    return seen


async def _replace(target: Target, desired: Desired, ref: Ref) -> Applied:
    """Delete and recreate; if the old one takes its time to go, the plan waits for it and comes back."""
    record = target.cache.get(desired.key)
    gone = await delete_object(target, ref, record)
    if not gone:
        return Applied("deleted, to be made anew")
    body: Body = await target.writer.apply(ref, desired.manifest.content)
    target.cache.applied(ref.resource, body.decode(Seen), target.unit.id, desired.digest)
    return Applied("replaced")


def _version(seen: Seen) -> int:
    return int(seen.metadata.resource_version)
