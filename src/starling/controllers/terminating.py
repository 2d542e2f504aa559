"""Whether a kind or a namespace is itself being deleted: then nobody asked for what finalizers would take away."""

from typing import Final

import msgspec

from starling.api import Resource
from starling.kube import Client, NotFound
from starling.kube import Resource as Served

__all__ = ["is_terminating"]

_NAMESPACES: Final = Served("", "v1", "Namespace", "namespaces", namespaced=False)
_CRDS: Final = Served(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


async def is_terminating(client: Client, kind: type[Resource], namespace: str) -> bool:
    """Whether the kind's definition or the namespace is going away, or has gone."""
    for ref in (_NAMESPACES.ref(namespace), _CRDS.ref(kind.declaration.crd_name)):
        try:
            found = (await client.get(ref)).decode(_Object)
        except NotFound:
            return True
        if found.metadata.deletion_timestamp:
            return True
    return False
