"""`starling cluster list|show|cordon|freeze|activate`: clusters at a glance, one in full, what may be done there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from starling.aio import SYSTEM_CLOCK
from starling.api import Cluster
from starling.api.v1alpha1 import ClusterMode
from starling.cli import console
from starling.cli.fleet import (
    DEFAULT_NAMESPACE,
    MANAGER,
    Fleet,
    HubContext,
    HubNamespace,
    HubOption,
    Key,
    hub,
    named_object,
    reached_by,
    selected,
)
from starling.cli.get import described_cluster, none_in_text
from starling.cli.options import Output, OutputOption, options
from starling.cli.standings import aligned, since
from starling.cli.status import tell_cluster
from starling.errors import InputError
from starling.kube import Client, Selection

__all__ = ["activate", "cluster_table", "cordon", "freeze", "list_clusters", "show", "well_of"]

Selector = Annotated[
    str, typer.Option("-l", "--selector", metavar="SELECTOR", help="Clusters by label, as kubectl takes it.")
]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="The Clusters' names.", show_default=False)]
HEADS: Final = ("CLUSTER", "PHASE", "MODE", "BY", "SEEN", "KUBERNETES", "AGENT", "OK")


def list_clusters(
    *,
    hub: HubOption = None,
    hub_context: HubContext = None,
    namespace: HubNamespace = DEFAULT_NAMESPACE,
    everywhere: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Look in every namespace.")] = False,
    selector: Selector = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """List the clusters: whether each is there, what may be done there, how much of what it runs is ok.

    SEEN is how long ago one was heard of that isn't Ready; a Ready one is heard of all the time. OK is how many
    Modules, SyncGroups and direct Syncs are well there, of all that go there; `starling get` has each one's version.

    Exit codes: 0 whatever the states, 2 a wrong call, kubeconfig or context, 3 something failed.

    starling cluster list

    starling cluster list -l region=eu -o json
    """
    console.run(_list(hub, hub_context, Selection("" if everywhere else namespace, selector), output))


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The Cluster's name.", show_default=False)],
    *,
    hub: HubOption = None,
    hub_context: HubContext = None,
    namespace: HubNamespace = DEFAULT_NAMESPACE,
    output: OutputOption = Output.TEXT,
) -> None:
    """Tell whether a cluster is there, and how everything stands that it runs, as `starling status cluster` does.

    Exit codes: 0 the cluster is Ready, 1 it isn't, 2 there is none, or the call is wrong, 3 something failed.

    starling cluster show eu-1
    """
    console.run(tell_cluster(hub, hub_context, Key(namespace, name), output))


@dataclass(frozen=True, slots=True, kw_only=True)
class Some:
    """Clusters, if not by their names; options, spread."""

    selector: Selector = ""
    hub: HubOption = None
    hub_context: HubContext = None
    namespace: HubNamespace = DEFAULT_NAMESPACE


@options
def cordon(names: Names = None, *, some: Some) -> None:
    """Have nothing new arrive on clusters; what runs there is kept as it is, drift is still corrected.

    A rollout goes on without them, and they catch up once they are active again.

    Exit codes: 0 they are cordoned, 2 there is no such cluster, or the call is wrong, 3 something failed.

    starling cluster cordon eu-1 eu-2

    starling cluster cordon -l region=eu
    """
    console.run(_set_mode(names or [], some, "Cordoned"))


@options
def freeze(names: Names = None, *, some: Some) -> None:
    """Keep hands off clusters: nothing new arrives, and drift isn't corrected either.

    A rollout goes on without them, and they catch up once they are active again.

    Exit codes: 0 they are frozen, 2 there is no such cluster, or the call is wrong, 3 something failed.

    starling cluster freeze eu-1
    """
    console.run(_set_mode(names or [], some, "Frozen"))


@options
def activate(names: Names = None, *, some: Some) -> None:
    """Have clusters take part again that were cordoned or frozen; they catch up with what they missed.

    Exit codes: 0 they are active, 2 there is no such cluster, or the call is wrong, 3 something failed.

    starling cluster activate eu-1

    starling cluster activate -l region=eu
    """
    console.run(_set_mode(names or [], some, "Active"))


async def _list(kubeconfig: Path | None, context: str | None, chosen: Selection, output: Output) -> None:
    async with hub(kubeconfig, context) as client:
        fleet = await Fleet.read(client, chosen.namespace, chosen.labels)
    if output is Output.JSON:
        console.document({"clusters": [_document(fleet, key) for key in fleet.clusters]})
    elif not fleet.clusters:
        console.note(none_in_text("clusters", chosen))
    else:
        console.data(aligned(cluster_table(fleet, SYSTEM_CLOCK.now(), everywhere=not chosen.namespace)))


def cluster_table(fleet: Fleet, now: datetime, *, everywhere: bool) -> list[list[str]]:
    """A row for each cluster, the heads first."""
    rows = [["NAMESPACE"] * everywhere + list(HEADS)]
    for key, cluster in fleet.clusters.items():
        status = cluster.status
        seen = "now" if status.phase == "Ready" else since(status.last_seen, now)  # told at changes of phase only
        ready, all_of_them = well_of(fleet, key)
        facts = [key.name, status.phase, cluster.spec.mode, reached_by(cluster)]
        said = [seen, status.kubernetes_version, status.agent_version, f"{ready}/{all_of_them}"]
        rows.append([key.namespace] * everywhere + facts + [word or "-" for word in said])
    return rows


def well_of(fleet: Fleet, cluster: Key) -> tuple[int, int]:
    """How many Modules, SyncGroups and Syncs are as they should be on a cluster, of all that go there."""
    states = [each.state for each in fleet.on(cluster)]
    return states.count("ok"), len(states)


def _document(fleet: Fleet, key: Key) -> dict[str, Any]:
    ready, all_of_them = well_of(fleet, key)
    return {**described_cluster(fleet.clusters[key]), "runs": {"ok": ready, "total": all_of_them}}


async def _set_mode(names: Sequence[str], some: Some, mode: ClusterMode) -> None:
    if bool(names) == bool(some.selector):
        raise InputError("which clusters is said by names, or by --selector", hint="one of both: eu-1, or -l region=eu")
    async with hub(some.hub, some.hub_context) as client:
        chosen = Selection(some.namespace, some.selector)
        for cluster in await _chosen(client, names, chosen):  # all are there before any is changed
            meta, before = cluster.metadata, cluster.spec.mode
            if before == mode:
                console.data(f"{meta.name} is {mode} already")
                continue
            ref = Cluster.declaration.resource.ref(meta.name, meta.namespace)
            await client.merge_patch(ref, {"metadata": {"uid": meta.uid}, "spec": {"mode": mode}}, manager=MANAGER)
            console.data(f"{meta.name} is {mode}, and was {before}")


async def _chosen(client: Client, names: Sequence[str], chosen: Selection) -> list[Cluster]:
    if names:
        return [await named_object(client, Cluster, Key(chosen.namespace, name)) for name in dict.fromkeys(names)]
    found = await selected(client, Cluster, chosen)
    if not found:
        raise InputError(
            f"there are no clusters with {chosen.labels} in {chosen.namespace}", hint="-n looks in another namespace"
        )
    return sorted(found, key=lambda each: each.metadata.name)
