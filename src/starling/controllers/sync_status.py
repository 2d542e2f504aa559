"""How a unit stands, as the engine says it and as a Sync's status has it: one from the other, and back. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from starling.api import Condition, conditions
from starling.api.v1alpha1 import SyncDrift, SyncObjects, SyncOperation, SyncProblem, SyncStatus
from starling.engine import Drift, Operation, Phase, Problem, Readiness, UnitStatus, pack, unpack
from starling.fleet import COMPLAINS, TRANSIENT
from starling.objects import ObjectKey
from starling.runtime import Key

__all__ = ["About", "bare_revision", "marked_revision", "sync_status", "unit_status"]

MOST: Final = 20
MOST_FIELDS: Final = 64
TEXT: Final = 2048
OBJECT: Final = 1024

_COUNTS: Final[Mapping[str, Readiness]] = {
    "current": Readiness.CURRENT,
    "in_progress": Readiness.IN_PROGRESS,
    "terminating": Readiness.TERMINATING,
    "failed": Readiness.FAILED,
    "missing": Readiness.MISSING,
    "unknown": Readiness.UNKNOWN,
}


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Which spec a status is about, and a problem that the engine knows nothing of."""

    generation: int
    target: str = ""
    problem: Problem | None = None


def marked_revision(revision: str, key: str) -> str:
    """A revision as the engine is given it: with the key of what was rendered, so that it can be told apart."""
    return f"{revision} {key}"


def bare_revision(revision: str) -> str:
    """The same as people read it."""
    return revision.partition(" ")[0]


def sync_status(
    status: UnitStatus, before: SyncStatus, about: About, now: datetime, cluster: Key | None = None
) -> SyncStatus:
    """The status of a Sync whose unit stands so; the same again if nothing has changed but the time.

    What is said of a `cluster` that isn't where the Sync is names it.
    """
    if cluster is not None and status.readiness is Readiness.UNKNOWN and str(cluster) not in status.message:
        status = msgspec.structs.replace(status, message=f"Cluster {cluster}: {status.message}")
    problems = (*((about.problem,) if about.problem is not None else ()), *status.problems)
    return SyncStatus(
        observed_generation=about.generation,
        conditions=_conditions(status, before, about, now),
        revision=bare_revision(status.revision),
        last_applied_revision=bare_revision(status.applied_revision),
        target=about.target,
        readiness=status.readiness.value,
        objects=_objects(status.objects),
        problems=tuple(_problem(each) for each in problems[:MOST]),
        drift=_drifts(status.drift),
        contended=_drifts(status.contended),
        shared=_drifts(status.shared),
        inventory=tuple(pack(status.inventory)),
        baseline=status.baseline,
        operation=_operation(status.operation) if status.operation is not None else None,
    )


def unit_status(status: SyncStatus) -> UnitStatus:
    """What was written down of a unit; InputError if someone changed the record so that it is none."""
    return UnitStatus(
        revision=status.revision,
        applied_revision=status.last_applied_revision,
        readiness=Readiness(status.readiness),
        objects={readiness: count for name, readiness in _COUNTS.items() if (count := getattr(status.objects, name))},
        problems=tuple(
            Problem(each.reason, each.message, _key(each.object) if each.object else None, each.hint)
            for each in status.problems
        ),
        inventory=unpack(status.inventory),
        baseline=status.baseline,
        operation=_unit_operation(status.operation) if status.operation is not None else None,
        drift=_unit_drifts(status.drift),
        contended=_unit_drifts(status.contended),
        shared=_unit_drifts(status.shared),
    )


def _conditions(status: UnitStatus, before: SyncStatus, about: About, now: datetime) -> tuple[Condition, ...]:
    known, generation = before.conditions, max(about.generation, 0)
    done = status.operation is not None and status.operation.phase is Phase.SUCCEEDED
    if about.problem is not None:
        found = conditions.reconciling(known, generation, now, _said(about.problem), about.problem.reason)
    elif status.readiness is Readiness.CURRENT and done:
        message = status.message or f"applied {bare_revision(status.applied_revision)}"
        found = conditions.ready(known, generation, now, message, "Succeeded")
    elif status.readiness is Readiness.FAILED:
        found = _failed(status, known, generation, now)
    else:
        message = status.message or f"{status.readiness}: it is being synced"
        found = conditions.reconciling(known, generation, now, message)
    if not status.contended:
        return found
    contended = Condition(
        type="Contended",
        status="True",
        reason="TakenAgainAndAgain",
        message="; ".join(map(str, status.contended))[:TEXT],
        last_transition_time=now.replace(microsecond=0),
        observed_generation=generation,
    )
    kept = conditions.replaced(known, contended)[-1]
    return (*found, kept)


def _failed(status: UnitStatus, known: Sequence[Condition], generation: int, now: datetime) -> tuple[Condition, ...]:
    """Stalled, unless what is wrong may pass by itself."""
    causes = [each for each in status.problems if each.reason != COMPLAINS]
    first = causes[0] if causes else None
    passes = bool(causes) and all(each.reason in TRANSIENT for each in causes)
    say = conditions.reconciling if passes else conditions.stalled
    message = status.message if first is None or first.message != status.message else _said(first)
    return say(known, generation, now, message, first.reason if first is not None else "Failed")


def _said(problem: Problem) -> str:
    return f"{problem.message}; {problem.hint}" if problem.hint else problem.message


def _objects(counts: Mapping[Readiness, int]) -> SyncObjects:
    found = {name: counts.get(readiness, 0) for name, readiness in _COUNTS.items()}
    return SyncObjects(total=sum(found.values()), **found)


def _problem(problem: Problem) -> SyncProblem:
    return SyncProblem(
        reason=problem.reason[:128],
        message=problem.message[:TEXT],
        object=_text(problem.key) if problem.key is not None else "",
        hint=problem.hint[:TEXT],
    )


def _drifts(drifts: Sequence[Drift]) -> tuple[SyncDrift, ...]:
    """As many of the latest as there is room for; an object whose name is too long to tell is left out."""
    found = (
        SyncDrift(
            object=_text(each.key),
            fields=tuple(field[:512] for field in each.fields[:MOST_FIELDS]),
            manager=each.manager[:128],
            time=each.time[:64],
        )
        for each in drifts
    )
    return tuple(each for each in found if each.object)[-MOST:]


def _unit_drifts(drifts: Iterable[SyncDrift]) -> tuple[Drift, ...]:
    return tuple(Drift(_key(each.object), each.fields, each.manager, each.time) for each in drifts)


def _operation(operation: Operation) -> SyncOperation:
    return SyncOperation(
        digest=operation.digest,
        revision=bare_revision(operation.revision),
        phase=operation.phase.value,
        wave=operation.wave,
        started_at=operation.started_at,
        finished_at=operation.finished_at,
        hooks_done=operation.hooks_done,
        message=operation.message[:TEXT],
    )


def _unit_operation(operation: SyncOperation) -> Operation:
    return Operation(
        digest=operation.digest,
        revision=operation.revision,
        phase=Phase(operation.phase),
        wave=operation.wave,
        started_at=operation.started_at,
        finished_at=operation.finished_at,
        hooks_done=operation.hooks_done,
        message=operation.message,
    )


def _text(key: ObjectKey) -> str:
    """An object in the form that the inventory has it in; nothing if that is too long."""
    text = pack({key: ""})[0].rstrip()
    return text if len(text) <= OBJECT else ""


def _key(text: str) -> ObjectKey:
    return next(iter(unpack([text])))
