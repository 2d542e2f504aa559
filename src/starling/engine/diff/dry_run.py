"""The diff between a cluster and a manifest, by having the API server apply the manifest as a dry run."""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from starling.engine.diff.comparing import compare
from starling.engine.diff.masking import quotes_secret
from starling.engine.diff.values import Effect, ObjectDiff
from starling.kube import (
    FIELD_MANAGER,
    ApiError,
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    Ref,
    ServerError,
    TooLarge,
)
from starling.objects import ObjectKey, digest, short_digest

__all__ = ["Apply", "diff_added", "diff_object", "diff_removed", "is_immutability", "refused_anew"]

_LOOKS = 3  # at an object that others write while we look
# At the top and in the metadata; what stands in either can't be changed by a patch, or is compared by itself.
_SERVERS_OWN = frozenset(
    {"apiVersion", "kind", "metadata", "managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"}
)
_CANT_CHANGE = re.compile(
    r"immutable|(may not|can ?not|can't|must not) (be )?(change|update|modif)|updates to .* forbidden", re.IGNORECASE
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Apply:
    """How an apply would go about it.

    `further` takes the object as applied and gives it without what goes besides; defaults among that come back. `force`
    deletes and recreates what can't be changed. `namespaces` will be there by then; None is any.
    """

    manager: str = FIELD_MANAGER
    further: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    force: bool = False
    namespaces: Container[str] | None = None


_APPLY = Apply()


async def diff_object(
    client: Client,
    ref: Ref,
    content: Mapping[str, Any],
    *,
    ignore: Sequence[str] = (),
    how: Apply = _APPLY,
) -> ObjectDiff:
    """What applying `content` would change. `ignore` has JSON pointers to fields that don't count.

    An object that the server would refuse is a Refused diff with the server's words; one whose namespace or kind isn't
    there yet is Created as it is written. Errors are for a server that can't be asked.
    """
    for look in range(1, _LOOKS + 1):
        live = await _live(client, ref)
        try:
            applied = await _applied(client, ref, content, live, how)
        except NotFound as error:
            if live is not None and look < _LOOKS:
                continue  # it has just gone, and its namespace or kind with it
            return _not_yet(error, ref, content, how)
        except ApiError as error:
            if not _is_refusal(error):
                raise
            refused = _refused(error, ref, live, content)
            replaced = how.force and refused.needs_force
            return await _replaced(client, ref, content, live, refused) if replaced else refused
        if _version(live) == _version(applied):  # both speak of the same state
            break
    # A dry run touches the status only where the apply would; but the server gives one to what it creates.
    status = live is not None or "status" in content
    return replace(compare(live, applied, ignore=ignore, status=status), key=_key(ref))


def diff_added(content: Mapping[str, Any], message: str = "") -> ObjectDiff:
    """A new object as it is written; for one that no server can be asked about, and `message` says why."""
    return replace(compare(None, content, status=True), message=message)


def diff_removed(live: Mapping[str, Any]) -> ObjectDiff:
    """An object that would be pruned."""
    return compare(live, None)


def is_immutability(error: ApiError) -> bool:
    """Whether the server refuses an object since it would change a field that can't be changed.

    There is no code for it, so this goes by the words of Kubernetes' validations, and by those usual in CRDs' rules:
    what is said of a field, without what is quoted, for names and values may read like it, and so may someone's policy.
    """
    said = (_QUOTED.sub("", cause.message) for cause in error.causes if cause.field)
    return isinstance(error, Invalid) and any(map(_CANT_CHANGE.search, said))


async def _applied(client: Client, ref: Ref, content: Mapping[str, Any], live: Any, how: Apply) -> Any:
    """The object as the apply would leave it."""
    applied = (await client.apply(ref, content, manager=how.manager, dry_run=True)).json()
    if how.further is None or live is None or (left := how.further(applied)) == applied:
        return applied
    # A patch as a dry run sees to defaults, validation and admission, and needs no right that an apply doesn't.
    changes = [*_changes(live, left, ""), *_changes(live["metadata"], left["metadata"], "/metadata")]
    return (await client.json_patch(ref, changes, manager=how.manager, dry_run=True)).json()


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> Iterator[dict[str, Any]]:
    """The JSON patch from one to the other, field by field, without the server's book-keeping."""
    for name in dict.fromkeys((*before, *after)):
        if name in _SERVERS_OWN or before.get(name) == after.get(name):
            continue
        path = f"{at}/{name}"
        yield {"op": "add", "path": path, "value": after[name]} if name in after else {"op": "remove", "path": path}


async def refused_anew(client: Client, ref: Ref, content: Mapping[str, Any]) -> str:
    """Why an object couldn't be made anew if it were deleted, in the server's words without what is secret; "": it can.

    The server is asked to make one under another name, since this one is still taken.
    """
    made = await _made_anew(client, ref, content)
    return made if isinstance(made, str) else ""


async def _made_anew(client: Client, ref: Ref, content: Mapping[str, Any]) -> Any:
    """The object as it would be, but for its uid; or why it wouldn't."""
    stand_in = f"starling-{short_digest(digest([str(ref), content]))}"
    metadata = {**content["metadata"], "name": stand_in}
    try:
        body = await client.create(
            ref.resource, {**content, "metadata": metadata}, namespace=ref.namespace, dry_run=True
        )
    except ApiError as error:
        if not _is_refusal(error):
            raise
        return _words(error, None, content).replace(stand_in, ref.name)
    return _renamed(body.json(), {stand_in: ref.name})


async def _replaced(client: Client, ref: Ref, content: Mapping[str, Any], live: Any, refused: ObjectDiff) -> ObjectDiff:
    made = await _made_anew(client, ref, content)
    if isinstance(made, str):
        message = f"{refused.message}\nand with force it isn't deleted, for it couldn't be made anew: {made}"
        return replace(refused, message=message, needs_force=False)
    # A Job's pods, say, have its uid among their labels.
    made = _renamed(made, {made["metadata"]["uid"]: live["metadata"]["uid"]})
    diff = compare(live, made, status="status" in content)
    return replace(diff, key=_key(ref), effect=Effect.REPLACED, message=refused.message, needs_force=True)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


async def _live(client: Client, ref: Ref) -> Any:
    try:
        return (await client.get(ref)).json()
    except NotFound:
        return None


def _is_refusal(error: ApiError) -> bool:
    """Whether it is about this object: a 500 is what a manifest gets whose types are wrong, or whose webhook fails."""
    refusals = (BadRequest, Forbidden, Conflict, TooLarge, Invalid)
    return isinstance(error, refusals) or (isinstance(error, ServerError) and error.code == 500)


def _refused(error: ApiError, ref: Ref, live: Any, content: Mapping[str, Any]) -> ObjectDiff:
    needs_force = live is not None and is_immutability(error)
    return ObjectDiff(
        key=_key(ref), effect=Effect.REFUSED, message=_words(error, live, content), needs_force=needs_force
    )


def _words(error: ApiError, live: Any, content: Mapping[str, Any]) -> str:
    """The server's words, unless they quote a Secret."""
    words = error.message.removeprefix(f"{error.action}: ")
    if quotes_secret(words, content) or (live and quotes_secret(words, live)):
        fields = ", ".join(sorted({cause.field for cause in error.causes if cause.field}))
        words = f"{error.reason}{f' ({fields})' if fields else ''}; the server's words quote the Secret, so not here"
    return words


def _not_yet(error: NotFound, ref: Ref, content: Mapping[str, Any], how: Apply) -> ObjectDiff:
    """An object that is to go where nothing is yet."""
    message = f"namespace {ref.namespace} doesn't exist yet; shown as written"
    if isinstance(error, NotServed):
        message = f"the cluster doesn't serve {ref.resource} yet; shown as written"
    elif how.namespaces is not None and ref.namespace not in how.namespaces:
        return ObjectDiff(key=_key(ref), effect=Effect.REFUSED, message=f"there is no namespace {ref.namespace}")
    return replace(diff_added(content, message), key=_key(ref))


def _version(content: Any) -> str:
    return str(((content or {}).get("metadata") or {}).get("resourceVersion", ""))


def _key(ref: Ref) -> ObjectKey:
    return ObjectKey(ref.resource.group, ref.resource.kind, ref.namespace, ref.name)
