"""`starling get`: which cluster has what, in one table."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

import typer

from starling.aio import SYSTEM_CLOCK
from starling.api import Cluster, Module, Resource, SyncGroup
from starling.cli import console
from starling.cli.fleet import DEFAULT_NAMESPACE, Fleet, hub, reached_by, selected
from starling.cli.options import Context, Kubeconfig
from starling.cli.standings import (
    Rolled,
    aligned,
    counted,
    in_text,
    labels_in_text,
    plural,
    since,
    version_of_revision,
)
from starling.errors import InputError
from starling.kube import Selection

__all__ = ["described_cluster", "described_rolled", "get", "matrix", "none_in_text", "summary"]

Rows = list[list[str]]

K = TypeVar("K", bound=Resource)


class What(StrEnum):
    """One kind alone."""

    CLUSTERS = "clusters"
    MODULES = "modules"
    SYNCGROUPS = "syncgroups"

    @classmethod
    def _missing_(cls, value: object) -> "What | None":
        return next((each for each in cls if f"{value}s" == each), None)


class Form(StrEnum):
    """How it is printed."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"


def get(
    what: Annotated[
        What | None, typer.Argument(help="One kind alone, with what matters of it.", show_default=False)
    ] = None,
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help=f"Where to look; else {DEFAULT_NAMESPACE}.", show_default=False),
    ] = None,
    everywhere: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Look in every namespace.")] = False,
    selector: Annotated[
        str, typer.Option("-l", "--selector", metavar="SELECTOR", help="Clusters by label, as kubectl takes it.")
    ] = "",
    output: Annotated[
        Form, typer.Option("-o", "--output", help="How to print it; wide: with labels, and never folded.")
    ] = Form.TEXT,
) -> None:
    """Show the clusters of the hub and what each Module and SyncGroup is there: its version, and a word.

    ok; updating (v1.1.0 → v1.2.0, or → v1.2.0 for the first time: on its way); pending: its turn hasn't come; held: the
    cluster is cordoned or frozen; leaving: it no longer goes there; failed; unreachable: what was known last; -: it
    doesn't go there. Where there are more of them than the terminal has room for, they are counted.

    With -o json, one document: clusters with their modules, syncGroups and syncs (those that go straight there), and
    modules and syncGroups. `starling status` says why.

    Exit codes: 0 whatever the states, 2 a wrong call, kubeconfig or context, 3 something failed.

    starling get

    starling get -l region=eu

    starling get modules -A -o json
    """
    if everywhere and namespace is not None:
        raise InputError("-A and -n exclude each other")
    where = "" if everywhere else namespace or DEFAULT_NAMESPACE
    chosen = Selection(where, selector)
    if what is None:
        console.run(_get(kubeconfig, context, chosen, output))
    else:
        console.run(_get_kind(kubeconfig, context, chosen, output, TABLES[what]))


async def _get(kubeconfig: Kubeconfig, context: Context, chosen: Selection, output: Form) -> None:
    async with hub(kubeconfig, context) as client:
        fleet = await Fleet.read(client, chosen.namespace, chosen.labels)
    if output is Form.JSON:
        console.document(document(fleet))
        return
    if not fleet.clusters:
        console.note(none_in_text("clusters", chosen))
        return
    wide = output is Form.WIDE
    console.data(matrix(fleet, None if wide else _width(), everywhere=not chosen.namespace, wide=wide))
    console.note(summary(fleet))


async def _get_kind(
    kubeconfig: Kubeconfig, context: Context, chosen: Selection, output: Form, table: "Table[Any]"
) -> None:
    async with hub(kubeconfig, context) as client:
        listed = await selected(client, table.kind, chosen)
    found = sorted(listed, key=lambda each: (each.metadata.namespace, each.metadata.name))
    if output is Form.JSON:
        console.document({table.called: [table.described(each) for each in found]})
    elif not found:
        console.note(none_in_text(table.called.lower(), chosen))
    else:
        everywhere = not chosen.namespace
        heads = ["NAMESPACE"] * everywhere + list(table.heads)
        now = SYSTEM_CLOCK.now()
        rows = [
            [each.metadata.namespace] * everywhere + [word or "-" for word in table.row(each, now)] for each in found
        ]
        console.data(aligned([heads, *rows]))


def matrix(fleet: Fleet, width: int | None, *, everywhere: bool = False, wide: bool = False) -> str:
    """Clusters by Modules and SyncGroups; where that is wider than there is room for, those are counted."""
    rows = _cluster_columns(fleet, everywhere=everywhere, wide=wide)
    found = {key: {each.name: each for each in fleet.on(key)} for key in fleet.clusters}
    groups = {f"syncgroup/{key.name}" for key, each in fleet.groups.items() if each.spec.selector is not None}
    names = [*sorted({key.name for key in fleet.modules}), *sorted(groups)]
    cells = [[in_text(found[key].get(name)) for name in names] for key in fleet.clusters]
    whole = aligned([head + more for head, more in zip(rows, [names, *cells], strict=True)])
    if width is None or max(map(len, whole.splitlines())) <= width:
        return whole
    counts = [[counted(found[key].values()) or "-"] for key in fleet.clusters]
    return aligned([head + more for head, more in zip(rows, [["STATES"], *counts], strict=True)])


def _cluster_columns(fleet: Fleet, *, everywhere: bool, wide: bool) -> Rows:
    """What stands left of that, the heads first."""
    heads = ["NAMESPACE"] * everywhere + ["CLUSTER", "PHASE", "MODE"] + ["LABELS"] * wide
    rows = [heads]
    for key, cluster in fleet.clusters.items():
        labels = [labels_in_text(cluster.metadata.labels) or "-"]
        rows.append([key.namespace] * everywhere + [key.name, cluster.status.phase, cluster.spec.mode] + labels * wide)
    return rows


def summary(fleet: Fleet) -> str:
    """The fleet in a line."""
    phases = [cluster.status.phase.lower() for cluster in fleet.clusters.values()]
    parts = [f"{plural(len(phases), 'cluster')} ({_counts(phases)})"]
    states = [_phase(module).lower() for module in fleet.modules.values()]
    parts += [f"{plural(len(states), 'module')} ({_counts(states)})" if states else "no modules"]
    if groups := [_phase(group).lower() for group in fleet.groups.values()]:
        parts.append(f"{plural(len(groups), 'syncgroup')} ({_counts(groups)})")
    if all_of_them := [each for key in fleet.clusters for each in fleet.on(key)]:
        parts.append(counted(all_of_them))
    if unclaimed := sum(len(fleet.unclaimed(key)) for key in fleet.clusters):
        parts.append(f"{unclaimed} of no module (starling status cluster names them)")
    return "; ".join(parts)


def _phase(rolled: Rolled) -> str:
    """Its phase, unless something keeps it from being what it says: then that it is stalled."""
    phase = rolled.status.phase
    stalled = any(each.type == "Stalled" and each.status == "True" for each in rolled.status.conditions)
    return "Stalled" if stalled and phase not in ("Failed", "RolledBack") else phase


def _cluster_row(cluster: Cluster, now: datetime) -> list[str]:
    status = cluster.status
    facts = [cluster.metadata.name, status.phase, cluster.spec.mode, reached_by(cluster)]
    said = [status.kubernetes_version, status.agent_version, since(changed_at(cluster), now)]
    return [*facts, *said, labels_in_text(cluster.metadata.labels)]


def _module_row(module: Module, _now: datetime) -> list[str]:
    sync, status = module.spec.sync, module.status
    source = sync.source.name or (sync.source.git.url if sync.source.git is not None else "")
    return [module.metadata.name, _phase(module), status.summary.ready, _version(module), source, sync.path]


def _group_row(group: SyncGroup, _now: datetime) -> list[str]:
    status, syncs = group.status, ", ".join(each.name for each in group.spec.syncs)
    where = status.summary.ready if group.spec.selector is not None else "the hub"
    return [group.metadata.name, _phase(group), where, _version(group), syncs]


def _version(rolled: Rolled) -> str:
    """What it is at; beside it stands how many are ready, so of one that was left again that is said."""
    status = rolled.status
    left = " (taken back)" if status.rollback_to else " (failed)"
    return version_of_revision(status.revision) + left * (status.failed_target == status.target != "")


def document(fleet: Fleet) -> dict[str, Any]:
    """The fleet as JSON."""
    clusters = [
        {
            **described_cluster(cluster),
            "modules": fleet.modules_on(key),
            "syncGroups": fleet.groups_on(key),
            "syncs": fleet.syncs_on(key),
            "unclaimed": [entry.name for entry in fleet.unclaimed(key)],
        }
        for key, cluster in fleet.clusters.items()
    ]
    modules, groups = ([described_rolled(each) for each in some.values()] for some in (fleet.modules, fleet.groups))
    return {"clusters": clusters, "modules": modules, "syncGroups": groups}


def described_cluster(cluster: Cluster) -> dict[str, Any]:
    """A Cluster as JSON, as far as it is told here."""
    meta, status = cluster.metadata, cluster.status
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "phase": status.phase,
        "mode": cluster.spec.mode,
        "by": reached_by(cluster),
        "labels": meta.labels,
        "kubernetesVersion": status.kubernetes_version,
        "agentVersion": status.agent_version,
        "lastSeen": status.last_seen,
    }


def described_rolled(rolled: Rolled) -> dict[str, Any]:
    """A Module or a SyncGroup as JSON, as far as it is told here."""
    meta, status = rolled.metadata, rolled.status
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "phase": status.phase,
        "version": version_of_revision(status.revision),
        "revision": status.revision,
        "target": status.target,
        "lastGood": status.last_good,
        "summary": {name: getattr(status.summary, name) for name in status.summary.__struct_fields__},
    }


@dataclass(frozen=True, slots=True)
class Table(Generic[K]):
    """A kind as it is listed: what JSON calls it, and its rows."""

    kind: type[K]
    called: str
    described: Callable[[K], dict[str, Any]]
    row: Callable[[K, datetime], list[str]]
    heads: tuple[str, ...]


TABLES: Final[Mapping[What, Table[Any]]] = {
    What.CLUSTERS: Table(
        Cluster,
        "clusters",
        described_cluster,
        _cluster_row,
        ("CLUSTER", "PHASE", "MODE", "BY", "KUBERNETES", "AGENT", "SINCE", "LABELS"),
    ),
    What.MODULES: Table(
        Module,
        "modules",
        described_rolled,
        _module_row,
        ("MODULE", "PHASE", "CLUSTERS", "VERSION", "SOURCE", "PATH"),
    ),
    What.SYNCGROUPS: Table(
        SyncGroup,
        "syncGroups",
        described_rolled,
        _group_row,
        ("SYNCGROUP", "PHASE", "CLUSTERS", "VERSION", "SYNCS"),
    ),
}


def changed_at(cluster: Cluster) -> datetime | None:
    """When its phase changed."""
    ready = (each for each in cluster.status.conditions if each.type == "Ready")
    return next((each.last_transition_time for each in ready), None)


def _counts(words: Sequence[str]) -> str:
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))


def _width() -> int | None:
    """How much room a line has; None: it goes to a file or a program, which has enough."""
    return console.stdout.width if console.stdout.is_terminal or "COLUMNS" in os.environ else None


def none_in_text(what: str, chosen: Selection) -> str:
    """That there are none of those that were asked for."""
    selected = f" with {chosen.labels}" if chosen.labels else ""
    where = f" in {chosen.namespace}; -A looks everywhere" if chosen.namespace else ""
    return f"there are no {what}{selected}{where}"
