"""Sync: one thing, kept the same on one cluster as in git."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from starling.api.declaration import Column, Rule, doc, kind, rules
from starling.api.meta import Fields, ReconciledStatus, Resource
from starling.api.v1alpha1.assemblage import Value
from starling.api.v1alpha1.fields import ObjectName
from starling.api.v1alpha1.rolloutstatus import Count, Digest
from starling.api.v1alpha1.source import Revision
from starling.api.v1alpha1.template import SyncTemplate

__all__ = [
    "ClusterReference",
    "Sync",
    "SyncDrift",
    "SyncObjects",
    "SyncOperation",
    "SyncProblem",
    "SyncSpec",
    "SyncStatus",
]

ObjectText = Annotated[str, Meta(max_length=1024)]
Text = Annotated[str, Meta(max_length=2048)]


class ClusterReference(Fields, frozen=True, kw_only=True):
    """A Cluster in the namespace of the object that names it."""

    name: Annotated[ObjectName, doc("The Cluster's name.")]


# Objects on the cluster before would be nobody's, and their record one of objects that aren't there.
@rules(
    Rule(
        "has(self.cluster) == has(oldSelf.cluster)"
        " && (!has(self.cluster) || self.cluster.name == oldSelf.cluster.name)",
        "can't be changed: delete the Sync, and make one for the other cluster",
        field_path=".cluster",
    )
)
class SyncSpec(SyncTemplate, frozen=True, kw_only=True):
    """What to keep the same as in git, where, and how."""

    cluster: Annotated[
        ClusterReference | None,
        doc("The Cluster that it goes to, which the hub connects to; absent: where this is. It can't be changed."),
    ] = None
    suspend: Annotated[bool, doc("Whether to leave everything alone for now.")] = False
    unit: Annotated[
        str,
        Meta(max_length=1024),
        doc("The unit's id in the fleet; honoured only where an Assemblage controls this."),
    ] = ""
    target: Annotated[Digest, doc("What a rollout moved it to; told, not used.")] = ""
    values: Annotated[
        tuple[Value, ...],
        Meta(max_length=128),
        doc("Bindings that the hub has resolved; honoured only where an Assemblage controls this."),
    ] = ()


class SyncObjects(Fields, frozen=True, kw_only=True):
    """How many objects are how ready."""

    total: Annotated[Count, doc("All of them.")] = 0
    current: Annotated[Count, doc("Those that are as they should be, and ready.")] = 0
    in_progress: Annotated[Count, doc("Those on their way.")] = 0
    terminating: Annotated[Count, doc("Those being deleted.")] = 0
    failed: Annotated[Count, doc("Those that failed.")] = 0
    missing: Annotated[Count, doc("Those that aren't there.")] = 0
    unknown: Annotated[Count, doc("Those of which nothing is known.")] = 0


class SyncProblem(Fields, frozen=True, kw_only=True):
    """What is wrong with one object, or with all."""

    reason: Annotated[str, Meta(max_length=128), doc("What it is, in one CamelCase word.")]
    message: Annotated[Text, doc("What it is, for people.")]
    object: Annotated[ObjectText, doc("The object: <group>/<kind>/<namespace>/<name>; absent: all.")] = ""
    hint: Annotated[Text, doc("The way out.")] = ""


class SyncDrift(Fields, frozen=True, kw_only=True):
    """Fields of an object that someone took from us."""

    object: Annotated[ObjectText, doc("The object: <group>/<kind>/<namespace>/<name>.")]
    fields: Annotated[tuple[Annotated[str, Meta(max_length=512)], ...], Meta(max_length=64), doc("The fields.")] = ()
    manager: Annotated[str, Meta(max_length=128), doc("Who did it, by the name of the field manager.")] = ""
    time: Annotated[str, Meta(max_length=64), doc("When.")] = ""


class SyncOperation(Fields, frozen=True, kw_only=True):
    """The way to a revision."""

    digest: Annotated[Digest, doc("All that is rendered, as it is applied.")]
    revision: Annotated[Revision, doc("The exact version.")] = ""
    phase: Annotated[Literal["Running", "Succeeded", "Failed"], doc("How far it is.")] = "Running"
    wave: Annotated[int | None, doc("Waves up to this one are done.")] = None
    started_at: Annotated[datetime, doc("When it began.")]
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    hooks_done: Annotated[tuple[ObjectText, ...], doc("The hooks that have run.")] = ()
    message: Annotated[Text, doc("Why it failed.")] = ""


class SyncStatus(ReconciledStatus, frozen=True, kw_only=True):
    """How it stands, and the record of what is ours."""

    revision: Annotated[Revision, doc("The exact version that was rendered last.")] = ""
    last_applied_revision: Annotated[Revision, doc("The exact version that was applied last, all of it.")] = ""
    target: Annotated[Digest, doc("The spec.target that this status is about.")] = ""
    readiness: Annotated[
        Literal["Unknown", "Missing", "Failed", "Terminating", "InProgress", "Current"],
        doc("How ready its objects are: the least of all."),
    ] = "Unknown"
    objects: Annotated[SyncObjects, doc("How many objects are how ready.")] = SyncObjects()
    problems: Annotated[tuple[SyncProblem, ...], Meta(max_length=20), doc("What is wrong.")] = ()
    drift: Annotated[tuple[SyncDrift, ...], Meta(max_length=20), doc("What others changed and was put right.")] = ()
    contended: Annotated[tuple[SyncDrift, ...], Meta(max_length=20), doc("What others change again and again.")] = ()
    shared: Annotated[tuple[SyncDrift, ...], Meta(max_length=20), doc("Fields that others own with us.")] = ()
    inventory: Annotated[
        tuple[str, ...],
        doc("All objects that are ours, each with a short digest of what was applied. Keep it as it is."),
    ] = ()
    baseline: Annotated[str, Meta(max_length=128), doc("One digest over all objects as we left them.")] = ""
    operation: Annotated[SyncOperation | None, doc("The last way to a revision.")] = None


@kind(
    plural="syncs",
    short_names=("sy",),
    columns=(
        Column("Cluster", ".spec.cluster.name", "The Cluster that it goes to."),
        Column("Readiness", ".status.readiness", "How ready its objects are."),
        Column("Objects", ".status.objects.total", "How many objects it has.", type="integer"),
        Column("Revision", ".status.lastAppliedRevision", "The exact version that was applied last."),
    ),
)
class Sync(Resource, frozen=True, kw_only=True):
    """A Sync keeps one thing the same as in git, where it is itself or on a Cluster that it names."""

    spec: Annotated[SyncSpec, doc("What to keep the same as in git, where, and how.")]
    status: Annotated[SyncStatus, doc("How it stands; never written by hand.")] = SyncStatus()
