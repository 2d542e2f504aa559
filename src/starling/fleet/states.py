"""How far an entry is on its cluster, from the Sync made of it."""

from collections.abc import Collection, Iterable
from typing import Final

from starling.api.v1alpha1 import Entry, EntryState, EntryStatus, Sync, SyncProblem, SyncStatus

__all__ = ["COMPLAINS", "TRANSIENT", "entry_status", "ready_of", "sync_state"]

LONGEST_MESSAGE: Final = 1024

# What was rolled out isn't at fault: the same, tried again, may do. If it never does, the rollout's timeout says so.
TRANSIENT: Final = frozenset(
    {
        "AlreadyExists",
        "ArtifactDamaged",
        "ArtifactIncomplete",
        "ArtifactNotFound",
        "Closed",
        "Conflict",
        "Expired",
        "MirrorBroken",
        "RecordTaken",
        "ServerError",
        "StoreFailed",
        "TimedOut",
        "TooManyRequests",
        "Unreachable",
        "Unreadable",
    }
)
COMPLAINS: Final = "Complains"
"""The reason of a problem with an object that is Current all the same."""


def entry_status(entry: Entry, sync: Sync | None) -> EntryStatus:
    """How the entry stands; what the Sync says counts only once it is about the entry's target."""
    if sync is None:
        return EntryStatus(name=entry.name, target=entry.target)
    status = sync.status
    about_it = status.target == entry.target and status.observed_generation == sync.metadata.generation
    state: EntryState = _state(status) if about_it else "updating"
    return EntryStatus(
        name=entry.name,
        target=entry.target,
        revision=status.last_applied_revision,
        state=state,
        readiness=status.readiness,
        message="" if state == "succeeded" else _message(status)[:LONGEST_MESSAGE],
    )


def _state(status: SyncStatus) -> EntryState:
    phase = status.operation.phase if status.operation is not None else ""
    return sync_state(status.readiness, phase, [problem.reason for problem in status.problems])


def sync_state(readiness: str, phase: str, reasons: Iterable[str]) -> EntryState:
    """How far a Sync is, by how ready its objects are, how its last operation ended, and what is wrong."""
    if readiness == "Current" and phase == "Succeeded":
        return "succeeded"
    causes = [reason for reason in reasons if reason != COMPLAINS]
    if readiness == "Failed" and not (causes and all(reason in TRANSIENT for reason in causes)):
        return "failed"
    return "updating"


def ready_of(syncs: Collection[EntryStatus]) -> str:
    """How many have succeeded, of all."""
    return f"{sum(each.state == 'succeeded' for each in syncs)}/{len(syncs)}"


def _causes(status: SyncStatus) -> list[SyncProblem]:
    """Why it isn't ready, what won't mend by itself first."""
    causes = (problem for problem in status.problems if problem.reason != COMPLAINS)
    return sorted(causes, key=lambda cause: cause.reason in TRANSIENT)


def _message(status: SyncStatus) -> str:
    said = (condition.message for condition in status.conditions if condition.type == "Ready")
    return next((cause.message for cause in _causes(status)), next(said, ""))
