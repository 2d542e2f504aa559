"""The diff between a cluster and a manifest, by having the API server apply the manifest as a dry run."""

import re
from collections.abc import Mapping, Sequence
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
from starling.objects import ObjectKey

__all__ = ["diff_added", "diff_object", "diff_removed", "is_immutability"]

_LOOKS = 3  # at an object that others write while we look
_CANT_CHANGE = re.compile(
    r"immutable|(may not|can ?not|can't|must not) (be )?(change|update|modif)|updates to .* forbidden", re.IGNORECASE
)


async def diff_object(
    client: Client,
    ref: Ref,
    content: Mapping[str, Any],
    *,
    ignore: Sequence[str] = (),
    manager: str = FIELD_MANAGER,
) -> ObjectDiff:
    """What applying `content` would change. `ignore` has JSON pointers to fields that don't count.

    An object that the server would refuse is a Refused diff with the server's words; one whose namespace or kind isn't
    there yet is Created as it is written. Errors are for a server that can't be asked.
    """
    for look in range(1, _LOOKS + 1):
        live = await _live(client, ref)
        try:
            applied = (await client.apply(ref, content, manager=manager, dry_run=True)).json()
        except NotFound as error:
            if live is not None and look < _LOOKS:
                continue  # it has just gone, and its namespace or kind with it
            return replace(diff_added(content, _not_yet(error, ref)), key=_key(ref))
        except ApiError as error:
            if not _is_refusal(error):
                raise
            return _refused(error, ref, live, content)
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

    There is no code for it, so this goes by the words of Kubernetes' validations, and by those usual in CRDs' rules.
    """
    words = [cause.message for cause in error.causes] or [error.message]
    return isinstance(error, Invalid | Forbidden) and any(_CANT_CHANGE.search(text) for text in words)


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
    words = error.message.removeprefix(f"{error.action}: ")
    if quotes_secret(words, content) or (live and quotes_secret(words, live)):
        fields = ", ".join(sorted({cause.field for cause in error.causes if cause.field}))
        words = f"{error.reason}{f' ({fields})' if fields else ''}; the server's words quote the Secret, so not here"
    needs_force = live is not None and is_immutability(error)
    return ObjectDiff(key=_key(ref), effect=Effect.REFUSED, message=words, needs_force=needs_force)


def _not_yet(error: NotFound, ref: Ref) -> str:
    if isinstance(error, NotServed):
        return f"the cluster doesn't serve {ref.resource} yet; shown as written"
    return f"namespace {ref.namespace} doesn't exist yet; shown as written"


def _version(content: Any) -> str:
    return str(((content or {}).get("metadata") or {}).get("resourceVersion", ""))


def _key(ref: Ref) -> ObjectKey:
    return ObjectKey(ref.resource.group, ref.resource.kind, ref.namespace, ref.name)
