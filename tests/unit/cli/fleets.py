"""Clusters, Modules and ProxyAssemblages for tests, with no more said than matters."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from starling.api import Cluster, Module, ObjectMeta, ProxyAssemblage, Sync, SyncGroup
from starling.api.v1alpha1 import (
    AssemblageSpec,
    ClusterMode,
    ClusterPhase,
    ClusterReference,
    ClusterSpec,
    ClusterStatus,
    Entry,
    EntryStatus,
    ExactGit,
    GroupSync,
    LabelSelector,
    ModuleSpec,
    ModuleStatus,
    ProxyAssemblageStatus,
    Pull,
    SourceReference,
    SyncGroupSpec,
    SyncGroupStatus,
    SyncOperation,
    SyncSpec,
    SyncStatus,
    SyncTemplate,
)

OLD, NEW = "a" * 40, "b" * 40
COMMITS = {"v1.1.0": OLD, "v1.2.0": NEW, "main": NEW}

__all__ = ["NEW", "OLD", "cluster", "entry", "group", "module", "part", "proxy", "status", "sync"]


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


def group(*parts: str, tag: str = "v1.2.0", selector: Mapping[str, str] | None = None) -> SyncGroup:
    """A SyncGroup called platform whose target is named as its tag."""
    source = SourceReference(name="platform")
    return SyncGroup(
        metadata=ObjectMeta(name="platform", namespace="n"),
        spec=SyncGroupSpec(
            selector=LabelSelector(match_labels=dict(selector or {})),
            syncs=tuple(GroupSync(name=each, source=source) for each in parts),
        ),
        status=SyncGroupStatus(target=tag, revision=f"{tag}@sha1:{COMMITS[tag]}", phase="Progressing"),
    )


def part(name: str, tag: str = "v1.2.0") -> Entry:
    """A part of it that travels in a ProxyAssemblage."""
    return msgspec.structs.replace(
        entry(f"platform.{name}", tag), unit=f"fleet/n/SyncGroup.platform.{name}@c", admission=1
    )


def sync(name: str, tag: str = "v1.2.0", **said: Any) -> Sync:
    """A part of it that goes straight from the hub to cluster c, and is well there, unless something else is said."""
    status = {
        "observed_generation": 1,
        "target": tag,
        "readiness": "Current",
        "last_applied_revision": f"sha1:{COMMITS[tag]}",
        "operation": SyncOperation(phase="Succeeded", digest="", started_at=datetime(2026, 1, 1, tzinfo=UTC)),
    }
    return Sync(
        metadata=ObjectMeta(
            name=f"platform.{name}.c",
            namespace="n",
            generation=1,
            labels={"starling.dev/part": name},
            annotations={"starling.dev/syncgroup-name": "platform"},
        ),
        spec=SyncSpec(cluster=ClusterReference(name="c"), source=entry(name, tag).source, target=tag),
        status=SyncStatus(**{**status, **said}),
    )
