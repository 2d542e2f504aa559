"""`starling cluster`: clusters that the hub connects to, and letting go of clusters and of what they run."""

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from starling.api import PLATFORM_NAMESPACE, Cluster, Module, ObjectMeta, ProxyAssemblage, SyncGroup
from starling.api.documents import document
from starling.api.enrolment import credentials_name, kubeconfig_name, owned_by, revoked
from starling.api.v1alpha1 import Entry
from starling.cli import clusters, console
from starling.cli.fleet import (
    AGENT_IMAGE,
    DEFAULT_NAMESPACE,
    AgentImage,
    HubContext,
    HubNamespace,
    HubOption,
    Key,
    Labels,
    NoAgent,
    apply_all,
    cluster_documents,
    delete_all,
    hub,
    keep_cluster,
    named_object,
    naming,
    parsed_labels,
    refuse_bad_name,
    refuse_other_way,
)
from starling.cli.install import applied, served
from starling.cli.kubeconfigs import find
from starling.cli.options import Timeout, options, seconds
from starling.cli.progress import counting
from starling.cli.standings import group_of, plural
from starling.errors import InputError, OutOfTime, StarlingError
from starling.fleet import selects
from starling.kube import (
    Client,
    Conflict,
    DeleteOptions,
    NotFound,
    Ref,
    Resource,
    kubeconfig_data,
)

__all__ = ["app"]

app = typer.Typer(help="The clusters of the fleet, as the hub knows them.", no_args_is_help=True)
app.command("list")(clusters.list_clusters)
app.command("show")(clusters.show)
app.command("cordon")(clusters.cordon)
app.command("freeze")(clusters.freeze)
app.command("activate")(clusters.activate)

ASK_EVERY: Final = 0.5
SECRETS: Final = Resource("", "v1", "Secret", "secrets", namespaced=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The Cluster's name.", show_default=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A cluster to add; options, spread."""

    kubeconfig: Annotated[
        Path, typer.Option("--kubeconfig", metavar="FILE", help="The cluster's own kubeconfig.", show_default=False)
    ]
    context: Annotated[str | None, typer.Option("--context", help="The context in it; else its current one.")] = None
    labels: Labels = ""
    hub: Annotated[
        Path | None,
        typer.Option(
            "--hub",
            metavar="FILE",
            help="The hub's kubeconfig; else $KUBECONFIG, ~/.kube/config or the pod's own account.",
        ),
    ] = None
    hub_context: Annotated[str | None, typer.Option("--hub-context", help="The context in it.")] = None
    namespace: HubNamespace = DEFAULT_NAMESPACE
    agent_image: AgentImage = AGENT_IMAGE
    no_agent: NoAgent = False


@app.command("add")
@options
def add(name: Name, *, added: Added) -> None:
    """Have the hub connect to a cluster (push), and bring Starling's kinds and agent there.

    The kubeconfig is stored in a Secret of the hub: certificates and tokens that it has in files are taken in; one that
    needs a program (exec) is refused. Whoever it belongs to needs to be cluster-admin there.

    Again is harmless: what changed is updated, labels are added to those that the Cluster has. A Cluster that was
    enrolled (pull) isn't turned into this kind: remove it first.

    Exit codes: 0 done, 2 the call or a kubeconfig is wrong, 3 something failed, 4 out of time.

    starling cluster add eu-1 --kubeconfig eu-1.yaml --labels region=eu,ring=canary --hub hub.yaml
    """
    refuse_bad_name(name)
    labels = parsed_labels(added.labels)
    given = find(added.kubeconfig, added.context)
    console.run(_add(Key(added.namespace, name), added, labels, given.standalone()))


@app.command("release")
def release(
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="The Cluster's name.", show_default=False)],
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="What to let go.", show_default=False)],
    *,
    hub: HubOption = None,
    hub_context: HubContext = None,
    namespace: HubNamespace = DEFAULT_NAMESPACE,
) -> None:
    """Remove from a cluster what was found there and no Module claims; `starling status cluster` names it.

    It is removed as if its Module had been deleted: its objects go with it, unless its deletionPolicy is Orphan.

    Exit codes: 0 done, 2 there is no such entry, or a Module claims it, 3 something failed.

    starling cluster release eu-1 old-shop
    """
    console.run(_release(hub, hub_context, Key(namespace, name), entry))


@app.command("remove")
def remove(
    name: Name,
    *,
    hub: HubOption = None,
    hub_context: HubContext = None,
    namespace: HubNamespace = DEFAULT_NAMESPACE,
    timeout: Timeout = "5m",
) -> None:
    """Let go of a cluster: nothing is deleted there, and what Modules brought stays, without Starling's marks.

    Waits until the cluster has done so; one that can't be reached isn't waited for, and keeps them, as do objects that
    the hub synced there directly. Its kubeconfig or account on the hub goes with it. Stopped half-way, the same command
    carries on.

    Exit codes: 0 it is gone, 2 there is none, 3 something failed, 4 out of time.

    starling cluster remove eu-1
    """
    seconds(timeout)
    with console.resumable():
        console.run(_remove(hub, hub_context, Key(namespace, name), timeout))


async def _add(key: Key, added: Added, labels: Mapping[str, str], config: Mapping[str, Any]) -> None:
    there = Client(kubeconfig_data(config, origin=f"kubeconfig {added.kubeconfig}"))
    async with hub(added.hub, added.hub_context) as client, there:
        before = await _known(client, key)
        async with naming(f"cluster {key.name}"):
            version = (await there.raw("GET", "/version")).json()["gitVersion"]
            console.note(f"cluster {key.name} answers: {config['clusters'][0]['cluster']['server']}, {version}")
            own = [document("v1", "Namespace", key.namespace, namespaced=False)]
            documents = cluster_documents("" if added.no_agent else added.agent_image)
            await apply_all(there, documents + own * (key.namespace != PLATFORM_NAMESPACE), f"cluster {key.name}")
            await served(there)
        await _register(client, key, labels, config, before)
    console.note(_what_next(key, added))


async def _known(client: Client, key: Key) -> Cluster | None:
    """The Cluster as it is, before anything is done; one of the other kind is refused."""
    try:
        found = (await client.get(Cluster.declaration.resource.ref(key.name, key.namespace))).decode(Cluster)
    except NotFound:
        return None
    refuse_other_way(found, "push")
    return found


async def _register(
    client: Client, key: Key, labels: Mapping[str, str], config: Mapping[str, Any], before: Cluster | None
) -> None:
    """Have the Secret and the Cluster on the hub; the Secret first, so that the Cluster can be reached at once."""
    secret = document(
        "v1",
        "Secret",
        kubeconfig_name(key.name),
        namespace=key.namespace,
        type="Opaque",
        data={"kubeconfig": base64.b64encode(msgspec.json.encode(config)).decode()},
    )
    secret["metadata"]["labels"]["starling.dev/kubeconfig"] = "cluster"
    known = [secret] if before is None else owned_by([secret], key.name, before.metadata.uid)
    await apply_all(client, known, "hub")
    reach = {"push": {"kubeconfigSecret": {"name": kubeconfig_name(key.name)}}}
    cluster, became = await keep_cluster(client, key, labels, reach)
    console.data(f"hub: {Cluster.declaration.resource.ref(key.name, key.namespace)} {became}")
    if before is None:
        await applied(client, owned_by([secret], key.name, cluster.metadata.uid)[0])


def _what_next(key: Key, added: Added) -> str:
    """What is left to do."""
    lines = [f"`starling controller` connects to it from the hub; starling status cluster {key.name} shows how it goes"]
    if added.no_agent:
        lines.append("without an agent there nothing is synced")
    lines.append(
        "where no pods run, as in clusters of `starling local` (their nodes are simulated), the agent is a process: "
        f"starling agent --kubeconfig {added.kubeconfig}" + (f" --context {added.context}" if added.context else "")
    )
    if key.namespace != PLATFORM_NAMESPACE:
        lines.append(f"in namespace {key.namespace} there, the agent acts as the service account `starling`: make one")
    return "\n".join(lines)


async def _release(kubeconfig: Path | None, context: str | None, key: Key, entry: str) -> None:
    async with hub(kubeconfig, context) as client:
        proxy = await named_object(client, ProxyAssemblage, key)
        names = [each.name for each in proxy.spec.syncs]
        if entry not in names:
            raise InputError(f"cluster {key.name} has no entry {entry}", hint=f"it has: {', '.join(names) or 'none'}")
        await _refuse_claimed(client, key, proxy.spec.syncs[names.index(entry)])
        if not proxy.spec.adopted or proxy.spec.adopted != proxy.status.assemblage:
            raise StarlingError(
                f"what cluster {key.name} runs hasn't been taken over yet, and would come back",
                hint=f"starling status cluster {key.name} says whether it is reached",
            )
        number = names.index(entry)
        ref = ProxyAssemblage.declaration.resource.ref(key.name, key.namespace)
        # The version that is put in place of itself makes it a Conflict if there is a newer one.
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": proxy.metadata.resource_version}
        try:
            await client.json_patch(ref, [version, {"op": "remove", "path": f"/spec/syncs/{number}"}])
        except Conflict as error:
            raise StarlingError(f"{ref} was just changed", hint="the same command again") from error
    stays = proxy.spec.syncs[number].deletion_policy == "Orphan"
    console.data(f"{entry} is released: its objects on {key.name} {'stay' if stays else 'are deleted'}")


async def _refuse_claimed(client: Client, key: Key, entry: Entry) -> None:
    group = group_of(entry)
    kind, name = (SyncGroup, group) if group else (Module, entry.name)
    try:
        answer = await client.get(kind.declaration.resource.ref(name, key.namespace))
        there = await named_object(client, Cluster, key)
    except NotFound:
        return
    selector = answer.decode(SyncGroup).spec.selector if group else answer.decode(Module).spec.selector
    if selector is not None and selects(selector, there.metadata.labels):
        raise InputError(
            f"{kind.declaration.kind} {key.namespace}/{name} claims it",
            hint=f"a selector that leaves out {key.name}, or deleting the {kind.declaration.kind}, takes it from there",
        )


async def _remove(kubeconfig: Path | None, context: str | None, key: Key, within: str) -> None:
    ref = Cluster.declaration.resource.ref(key.name, key.namespace)
    async with hub(kubeconfig, context) as client:
        cluster = await named_object(client, Cluster, key)
        if cluster.metadata.deletion_timestamp is None:
            await client.delete(ref, DeleteOptions(uid=cluster.metadata.uid))
        try:
            async with asyncio.timeout(seconds(within)):
                await _gone(client, ref, cluster.metadata.uid)
        except TimeoutError:
            raise OutOfTime(
                f"cluster {key.name} isn't let go after {within}",
                hint="is `starling controller` running? The same command goes on waiting",
            ) from None
        console.data(f"hub: {ref} deleted")
        await delete_all(client, [*await _left(client, cluster), *revoked(key.name, key.namespace)], "hub")
    console.note(_farewell(cluster))


def _farewell(cluster: Cluster) -> str:
    name = cluster.metadata.name
    if cluster.status.phase != "Ready":
        return (
            f"cluster {name} is let go, but wasn't there to hear of it: what runs there stays, Starling's marks and all"
        )
    return f"cluster {name} is let go; what runs there stays, what Modules brought there without Starling's marks"


class _Owned(msgspec.Struct):
    metadata: ObjectMeta


async def _left(client: Client, cluster: Cluster) -> list[Ref]:
    """What belongs to a Cluster that is gone: credentials aren't left to a garbage collector, which a hub may lack."""
    meta = cluster.metadata
    refs = [
        SECRETS.ref(kubeconfig_name(meta.name), meta.namespace),
        SECRETS.ref(credentials_name(meta.name), meta.namespace),
        ProxyAssemblage.declaration.resource.ref(meta.name, meta.namespace),
    ]
    found = []
    for ref in refs:
        with suppress(NotFound):
            owners = (await client.get(ref)).decode(_Owned).metadata.owner_references
            found += [ref] * any(owner.uid == meta.uid for owner in owners)
    return found


async def _gone(client: Client, ref: Ref, uid: str) -> None:
    """Return once there is no such Cluster, and tell meanwhile what is waited for."""
    told = ""
    with counting() as report:
        while True:
            try:
                found = (await client.get(ref)).decode(Cluster)
            except NotFound:
                return
            if found.metadata.uid != uid:
                return
            if (waits := await _waiting(client, found)) != told:
                told = waits
                report(told)
            await client.transport.clock.sleep(ASK_EVERY)


async def _waiting(client: Client, cluster: Cluster) -> str:
    meta = cluster.metadata
    try:
        ref = ProxyAssemblage.declaration.resource.ref(meta.name, meta.namespace)
        left = len((await client.get(ref)).decode(ProxyAssemblage).status.syncs)
    except NotFound:
        left = 0
    return f"waiting for {meta.name} ({cluster.status.phase}): {plural(left, 'entry', 'entries')} to be left"
