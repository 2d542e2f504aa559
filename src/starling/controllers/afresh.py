"""Objects as they are now: caches may lag behind, and what is deleted for that doesn't come back."""

from typing import TypeVar

from starling.api import Resource
from starling.kube import Client, NotFound
from starling.runtime import Key

__all__ = ["afresh"]

K = TypeVar("K", bound=Resource)


async def afresh(client: Client, kind: type[K], key: Key) -> K | None:
    """The object as the API server has it; None if it has none."""
    try:
        return (await client.get(kind.declaration.resource.ref(key.name, key.namespace))).decode(kind)
    except NotFound:
        return None
