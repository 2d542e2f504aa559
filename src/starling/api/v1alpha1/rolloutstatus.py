"""Where a rollout stands: what is recorded of it, and told, by every kind that rolls something out."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from starling.api.declaration import doc
from starling.api.meta import Fields, ReconciledStatus
from starling.api.v1alpha1.fields import ObjectName
from starling.api.v1alpha1.source import Revision

__all__ = [
    "MOST_ADMITTED",
    "MOST_FAILED",
    "MOST_FAILURES",
    "Admitted",
    "Count",
    "Digest",
    "RolloutFailure",
    "RolloutPhase",
    "RolloutStatus",
    "RolloutSummary",
    "StageApproval",
]

MOST_FAILURES, MOST_FAILED = 10, 5
"""How many failed targets are remembered, and how many clusters of each."""

MOST_ADMITTED = 200
"""How many clusters of one rollout may be updating at once, whatever its policy says."""

RolloutPhase = Literal[
    "Pending",
    "Progressing",
    "Baking",
    "Waiting",
    "Degraded",
    "Failed",
    "RollingBack",
    "RolledBack",
    "Succeeded",
    "Suspended",
    "Removing",
]
Count = Annotated[int, Meta(ge=0)]
Digest = Annotated[str, Meta(max_length=128)]


class Admitted(Fields, frozen=True, kw_only=True):
    """A cluster that may move to a target, or be left, and hasn't told yet that it has."""

    cluster: Annotated[ObjectName, doc("The Cluster's name.")]
    since: Annotated[datetime, doc("When it was admitted.")]
    target: Annotated[Digest, doc("What it moves to; the newest target, or the last good one.")] = ""
    admission: Annotated[
        Count, doc("The counter at that; what the cluster says of an entry with a lower one is from before.")
    ] = 0
    leave: Annotated[bool, doc("Whether it is to lose its entry, since nothing of this goes there any more.")] = False
    restore: Annotated[
        bool, doc("Whether its time is up and it never heard of it: its entry goes back to what it runs.")
    ] = False


class StageApproval(Fields, frozen=True, kw_only=True):
    """That a stage may start with the target, and who said so."""

    stage: Annotated[str, Meta(max_length=63), doc("The stage.")]
    by: Annotated[str, Meta(max_length=256), doc("Who approved it, by the name that the API server has for them.")] = ""
    at: Annotated[datetime, doc("When it was seen.")]
    gate: Annotated[bool, doc("Whether it was the stage's gate that answered, and nobody who approved.")] = False


class RolloutFailure(Fields, frozen=True, kw_only=True):
    """That a target failed, or was undone, where, and why."""

    target: Annotated[Digest, doc("The target.")]
    at: Annotated[datetime, doc("When that was seen.")]
    by: Annotated[str, Meta(max_length=256), doc("Who had it undone; absent: it failed.")] = ""
    stage: Annotated[str, Meta(max_length=63), doc("The stage in which more clusters failed than may.")] = ""
    clusters: Annotated[
        tuple[Annotated[str, Meta(max_length=253)], ...],
        Meta(max_length=MOST_FAILED),
        doc("Those that failed, the first few."),
    ] = ()
    message: Annotated[str, Meta(max_length=512), doc("What the first of them said.")] = ""


class RolloutSummary(Fields, frozen=True, kw_only=True):
    """How many clusters are in which state."""

    total: Annotated[Count, doc("All that it goes to.")] = 0
    pending: Annotated[Count, doc("Those whose turn hasn't come.")] = 0
    updating: Annotated[Count, doc("Those on their way to the target.")] = 0
    succeeded: Annotated[Count, doc("Those that are at the target, and well.")] = 0
    failed: Annotated[Count, doc("Those that failed at the target.")] = 0
    unreachable: Annotated[Count, doc("Those that aren't at the target and can't be reached.")] = 0
    held: Annotated[Count, doc("Those not at the target that are cordoned or frozen.")] = 0
    leaving: Annotated[Count, doc("Those that it no longer goes to, and still have it.")] = 0
    ready: Annotated[str, Meta(max_length=32), doc("Those that are at the target and well, of all: 3/4.")] = ""


class RolloutStatus(ReconciledStatus, frozen=True, kw_only=True):
    """Where a rollout stands."""

    target: Annotated[Digest, doc("What clusters are moved to: a digest of content and instructions.")] = ""
    revision: Annotated[Revision, doc("The exact version that the target was made from.")] = ""
    source_revision: Annotated[
        Revision, doc("The Source's version last seen; its content is the target's, though it may be another.")
    ] = ""
    target_since: Annotated[datetime | None, doc("When it became the target.")] = None
    last_good: Annotated[Digest, doc("The target that went through all stages last.")] = ""
    failed_target: Annotated[
        Digest, doc("The target that failed on more clusters than may, or was undone; it is tried again if told to.")
    ] = ""
    rollback_to: Annotated[Digest, doc("The target that clusters return to, since the newest one failed.")] = ""
    ended: Annotated[Digest, doc("The target that has been through all stages, with failures or without.")] = ""
    phase: Annotated[RolloutPhase, doc("Where the rollout stands, in one word.")] = "Pending"
    stage: Annotated[str, Meta(max_length=63), doc("The stage whose turn it is; none once all are done.")] = ""
    stages_done: Annotated[
        tuple[Annotated[str, Meta(max_length=63)], ...],
        Meta(max_length=64),
        doc("The stages that are done with the target."),
    ] = ()
    stage_started: Annotated[datetime | None, doc("When that stage was free to start.")] = None
    baking_since: Annotated[datetime | None, doc("When the last cluster of that stage got there.")] = None
    approvals: Annotated[
        tuple[StageApproval, ...],
        Meta(max_length=32),
        doc("What was approved of the target, by people and by gates."),
    ] = ()
    failures: Annotated[
        tuple[RolloutFailure, ...],
        Meta(max_length=MOST_FAILURES),
        doc("The targets that failed or were undone, the newest last, as far as they are kept."),
    ] = ()
    retried_at: Annotated[Count, doc("The counter when it was last to try again; failures before don't count.")] = 0
    order: Annotated[
        str, Meta(max_length=64), doc("The id of the order in starling.dev/order that was carried out last.")
    ] = ""
    admission: Annotated[Count, doc("Counts admissions; an entry with a lower one is older.")] = 0
    admitted: Annotated[
        tuple[Admitted, ...],
        Meta(max_length=MOST_ADMITTED),
        doc("The clusters that may move now. Written before they do."),
    ] = ()
    summary: Annotated[RolloutSummary, doc("How many clusters are in which state.")] = RolloutSummary()
