"""Writing what controllers found out: status as a whole, finalizers, each onto the state that was read."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from starling.api import Resource
from starling.api.meta import Status
from starling.kube import FIELD_MANAGER, Client, Ref

__all__ = ["CONFIRM", "key_ref", "owned_by", "says_the_same", "set_finalizer", "write_status"]

K = TypeVar("K", bound=Resource)

CONFIRM: Final = "starling.dev/confirm"


def key_ref(obj: Resource) -> Ref:
    """Where an object of ours is."""
    return type(obj).declaration.resource.ref(obj.metadata.name, obj.metadata.namespace)


def owned_by(obj: Resource) -> dict[str, Any]:
    """An ownerReference: what carries it goes when the object does."""
    declared, meta = type(obj).declaration, obj.metadata
    return {
        "apiVersion": f"{declared.group}/{declared.version}",
        "kind": declared.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def says_the_same(before: Status, after: Status) -> bool:
    """Whether a status says nothing new; the API server has an order of its own for conditions."""
    ordered = tuple(
        msgspec.structs.replace(each, conditions=tuple(sorted(each.conditions, key=lambda one: one.type)))
        for each in (before, after)
    )
    return ordered[0] == ordered[1]


async def write_status(client: Client, obj: K, status: Status, *, manager: str = FIELD_MANAGER, onto: str = "") -> K:
    """Have the object's status so, as far as it is this manager's; Conflict if it isn't at version `onto` any more."""
    metadata: dict[str, Any] = {"name": obj.metadata.name, "namespace": obj.metadata.namespace}
    if onto:
        metadata["resourceVersion"] = onto
    declared = type(obj).declaration
    body = {
        "apiVersion": f"{declared.group}/{declared.version}",
        "kind": declared.kind,
        "metadata": metadata,
        "status": msgspec.to_builtins(status),
    }
    answer = await client.apply(key_ref(obj).status, body, manager=manager)
    return answer.decode(type(obj))


async def set_finalizer(client: Client, obj: K, finalizer: str, *, present: bool) -> K:
    """Have one finalizer on the object or not; Conflict if it has changed since it was read."""
    others = [each for each in obj.metadata.finalizers if each != finalizer]
    patch: Mapping[str, Any] = {
        "metadata": {
            "resourceVersion": obj.metadata.resource_version,
            "finalizers": [*others, finalizer] if present else others,
        }
    }
    answer = await client.merge_patch(key_ref(obj), patch)
    return answer.decode(type(obj))
