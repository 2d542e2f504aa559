"""Objects with their managed fields, as tests apply and read them."""

import asyncio
from typing import Any

import msgspec

from starling.engine.adoption import adopt
from starling.engine.fields import ManagedFields
from starling.kube import Body, Client, NotServed, Ref
from starling.objects import GroupVersionKind

THINGS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.fields.test"},
    "spec": {
        "group": "fields.test",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v2",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
            for version in ("v1", "v2")
        ],
    },
}


class SeenMetadata(msgspec.Struct, rename="camel"):
    """What tests read of an object's metadata."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    managed_fields: tuple[ManagedFields, ...] = ()


class Seen(msgspec.Struct):
    """What tests read of an object."""

    metadata: SeenMetadata
    spec: Any = None


def entries(body: Body) -> tuple[ManagedFields, ...]:
    """The managed fields in an answer."""
    return body.decode(Seen).metadata.managed_fields


async def ref_of(client: Client, content: dict[str, Any], namespace: str) -> Ref:
    """Where a manifest's object is, in this namespace if in any."""
    kind = GroupVersionKind.from_api_version(content["apiVersion"], content["kind"])
    resource = await client.discovery.resource(kind)
    return resource.ref(content["metadata"]["name"], namespace if resource.namespaced else "")


async def serve_things(client: Client) -> None:
    """Have the cluster serve a custom kind that keeps whatever it is given, in two versions."""
    await client.apply(await ref_of(client, THINGS, ""), THINGS)
    async with asyncio.timeout(60):
        while True:
            try:
                for version in ("v1", "v2"):
                    resource = await client.discovery.resource(GroupVersionKind("fields.test", version, "Thing"))
                    await client.list(resource, Seen)
            except NotServed:
                client.discovery.forget()
                await asyncio.sleep(0.05)
            else:
                return


async def take_over(client: Client, ref: Ref, content: dict[str, Any]) -> Body:
    """Apply, adopt, and apply again as long as adoption asks for it; the last answer."""
    body = await client.apply(ref, content)
    while adoption := adopt(entries(body)):
        body = await client.json_patch(ref, adoption.operations)
        if adoption.beyond:
            body = await client.apply(ref, content)
    return body
