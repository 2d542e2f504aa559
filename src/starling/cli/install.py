"""`starling install`: what a hub must hold, applied or printed."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
import typer

from starling.api import installation
from starling.cli import console
from starling.cli.options import Context, Kubeconfig
from starling.errors import StarlingError
from starling.kube import Changed, Client, Metadata, NotFound, Ref, default_access, watch
from starling.objects import GroupVersionKind, dump_all

__all__ = ["install"]

_CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
ESTABLISHED_WITHIN = 60.0


def install(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    export: Annotated[bool, typer.Option("--export", help="Print the manifests instead of applying them.")] = False,
) -> None:
    """Apply Starling's kinds, namespace and roles to a hub; again is harmless, and how to upgrade.

    starling install --kubeconfig hub.yaml

    starling install --export | kubectl apply --server-side -f -
    """
    if export:
        console.data(dump_all(installation()))
    else:
        asyncio.run(_install(Client(default_access(kubeconfig, context))))


async def _install(client: Client) -> None:
    async with client:
        for manifest in installation():
            ref, outcome = await _apply(client, manifest)
            console.data(f"{ref} {outcome}")
        names = [manifest["metadata"]["name"] for manifest in installation() if manifest["kind"] == _CRD.kind]
        await _established(client, names)


async def _apply(client: Client, manifest: Mapping[str, Any]) -> tuple[Ref, str]:
    """Apply one object, and say whether that created, changed or left it."""
    kind = GroupVersionKind.from_api_version(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    ref = (await client.discovery.resource(kind)).ref(metadata["name"], metadata.get("namespace", ""))
    try:
        before = (await client.get(ref)).decode(_Object).metadata.resource_version
    except NotFound:
        before = ""
    after = (await client.apply(ref, manifest)).decode(_Object).metadata.resource_version
    if not before:
        return ref, "created"
    return ref, "unchanged" if after == before else "changed"


async def _established(client: Client, names: Iterable[str]) -> None:
    """Return once the API server serves all these kinds."""
    waiting = set(names)
    resource = await client.discovery.resource(_CRD)
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN), aclosing(watch(client, resource, _Definition)) as events:
            async for event in events:
                if isinstance(event, Changed) and event.object.established:
                    waiting.discard(event.object.metadata.name)
                if not waiting:
                    return
    except TimeoutError as error:
        raise StarlingError(
            f"not served after {ESTABLISHED_WITHIN:.0f} s: {', '.join(sorted(waiting))}",
            hint="kubectl describe crd says why",
        ) from error


class _Object(msgspec.Struct):
    metadata: Metadata


class _Condition(msgspec.Struct):
    type: str
    status: str


class _DefinitionStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Definition(msgspec.Struct):
    metadata: Metadata
    status: _DefinitionStatus = _DefinitionStatus()

    @property
    def established(self) -> bool:
        return any(
            condition.type == "Established" and condition.status == "True" for condition in self.status.conditions
        )
