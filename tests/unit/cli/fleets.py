"""Clusters, Modules and ProxyAssemblages for tests, with no more said than matters."""

from collections.abc import Mapping

from starling.api import Cluster, Module, ObjectMeta, ProxyAssemblage
from starling.api.v1alpha1 import (
    AssemblageSpec,
    ClusterMode,
    ClusterPhase,
    ClusterSpec,
    ClusterStatus,
    Entry,
    EntryStatus,
    ExactGit,
    LabelSelector,
    ModuleSpec,
    ModuleStatus,
    ProxyAssemblageStatus,
    Pull,
    SourceReference,
    SyncTemplate,
)

OLD, NEW = "a" * 40, "b" * 40
COMMITS = {"v1.1.0": OLD, "v1.2.0": NEW, "main": NEW}

__all__ = ["NEW", "OLD", "cluster", "entry", "module", "proxy", "status"]


def cluster(
    name: str, labels: Mapping[str, str] | None = None, phase: ClusterPhase = "Ready", mode: ClusterMode = "Active"
) -> Cluster:
    """A Cluster."""
    return Cluster(
        metadata=ObjectMeta(name=name, namespace="n", labels=dict(labels or {})),
        spec=ClusterSpec(pull=Pull(), mode=mode),
        status=ClusterStatus(phase=phase),
    )


def module(name: str, tag: str = "v1.2.0", selector: Mapping[str, str] | None = None) -> Module:
    """A Module whose target is named as its tag."""
    return Module(
        metadata=ObjectMeta(name=name, namespace="n"),
        spec=ModuleSpec(
            selector=LabelSelector(match_labels=dict(selector or {})),
            sync=SyncTemplate(source=SourceReference(name="platform")),
        ),
        status=ModuleStatus(target=tag, revision=f"{tag}@sha1:{COMMITS[tag]}", phase="Progressing"),
    )


def entry(name: str, tag: str = "v1.2.0") -> Entry:
    """What a cluster is to run."""
    source = SourceReference(git=ExactGit(url="https://git.example/platform", commit=COMMITS[tag], tag=tag))
    return Entry(name=name, unit=f"fleet/n/Module.{name}@c", target=tag, source=source)


def status(name: str, **said: str) -> EntryStatus:
    """What it says of that; at v1.2.0, unless something else is said."""
    revision = f"sha1:{COMMITS[said.pop('applied', 'v1.2.0')]}"
    return EntryStatus(name=name, **{"target": "v1.2.0", "state": "succeeded", "revision": revision, **said})  # type: ignore[arg-type] # of many kinds


def proxy(name: str, *parts: Entry | EntryStatus) -> ProxyAssemblage:
    """All that a cluster runs, and says."""
    return ProxyAssemblage(
        metadata=ObjectMeta(name=name, namespace="n"),
        spec=AssemblageSpec(instance="fleet", syncs=tuple(each for each in parts if isinstance(each, Entry))),
        status=ProxyAssemblageStatus(syncs=tuple(each for each in parts if isinstance(each, EntryStatus))),
    )
