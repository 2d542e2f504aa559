"""`starling install`: what a hub must hold, applied or printed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from starling import __version__
from starling.api import KINDS, Declaration, installation
from starling.cli import console
from starling.cli.options import Context, Kubeconfig
from starling.errors import OutOfTime
from starling.kube import Body, Client, NotFound, NotServed, Ref, default_access
from starling.objects import GroupVersionKind, dump_all

__all__ = ["applied", "install", "served"]

SERVED_WITHIN = 60.0
ASK_EVERY = 0.1


def install(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    export: Annotated[bool, typer.Option("--export", help="Print the manifests instead of applying them.")] = False,
    image: Annotated[
        str, typer.Option("--image", metavar="IMAGE", help="The image that controller and agent run from.")
    ] = f"starling:{__version__}",
    instance: Annotated[
        str, typer.Option("--instance", help="The installation's name; keep it when a hub is built anew.")
    ] = "fleet",
    no_controller: Annotated[
        bool, typer.Option("--no-controller", help="All but controller and agent: they are started otherwise.")
    ] = False,
) -> None:
    """Apply Starling's kinds, namespace, roles, controller and agent to a hub; again is harmless, and how to upgrade.

    starling install --kubeconfig hub.yaml

    starling install --export | kubectl apply --server-side -f -
    """
    documents = installation("" if no_controller else image, instance)
    if export:
        console.data(dump_all(documents))
    else:
        console.run(_install(Client(default_access(kubeconfig, context)), documents))


async def _install(client: Client, documents: Sequence[Mapping[str, Any]]) -> None:
    async with client:
        for manifest in documents:
            ref, outcome = await applied(client, manifest)
            console.data(f"{ref} {outcome}")
        await served(client)


async def applied(client: Client, manifest: Mapping[str, Any]) -> tuple[Ref, str]:
    """Apply one object, and say whether that created, changed or left it."""
    kind = GroupVersionKind.from_api_version(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    ref = (await client.discovery.resource(kind)).ref(metadata["name"], metadata.get("namespace", ""))
    try:
        before = _content(await client.get(ref))
    except NotFound:
        before = None
    after = _content(await client.apply(ref, manifest))
    if before is None:
        return ref, "created"
    return ref, "unchanged" if after == before else "changed"


def _content(body: Body) -> Any:
    """An object without what every write touches, whether or not it changed anything."""
    found = body.json()
    for book_keeping in ("managedFields", "resourceVersion", "generation"):
        found["metadata"].pop(book_keeping, None)
    return found


async def served(client: Client) -> None:
    """Return once the API server serves our kinds, which it does a moment after it accepted the CRDs."""
    await asyncio.gather(*(_served(client, resource.declaration) for resource in KINDS))


async def _served(client: Client, declared: Declaration) -> None:
    kind = GroupVersionKind(declared.group, declared.version, declared.kind)
    try:
        async with asyncio.timeout(SERVED_WITHIN):
            while not await _knows(client, kind):
                await client.transport.clock.sleep(ASK_EVERY)
    except TimeoutError as error:
        raise OutOfTime(
            f"the API server doesn't serve {kind} after {SERVED_WITHIN:.0f} s",
            hint=f"kubectl describe crd {declared.crd_name} says why",
        ) from error


async def _knows(client: Client, kind: GroupVersionKind) -> bool:
    try:
        return bool(await client.discovery.resource(kind))
    except NotServed:
        return False
