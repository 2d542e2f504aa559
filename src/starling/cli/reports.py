"""What commands say of units: in a sentence, as JSON, and what went wrong with the way out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from starling.cli import console
from starling.cli.progress import Progress
from starling.cli.units import Session
from starling.engine import Action, Operation, Plan, Problem, Readiness, SyncEvent, Task, UnitSeen, UnitStatus
from starling.engine.health import least
from starling.errors import StarlingError
from starling.objects import ObjectKey

__all__ = [
    "described",
    "not_ready",
    "operation_document",
    "plan_document",
    "refusal",
    "refuse",
    "show",
    "summary",
    "tell_problems",
    "unit_document",
]

MOST_NAMED: Final = 5


def tell_problems(problems: Sequence[Problem]) -> None:
    """Say what is wrong, all of it; a way out that several share is said once, after the last of them."""
    for number, problem in enumerate(problems):
        same = [each.hint for each in problems[number + 1 :]]
        console.error(StarlingError(problem.message, hint=problem.hint if problem.hint not in same else None))


def refusal(plan: Plan, name: str) -> tuple[Problem, ...]:
    """The guard's refusal, with the options that overrule it, and the command that is for it."""
    if plan.refusal is None:
        return ()
    hint = (
        f"is -f right? If it is meant: --confirm {plan.digest}, or --allow-empty; "
        f"to take the unit away: starling delete --name {name}"
    )
    return (msgspec.structs.replace(plan.refusal, hint=hint),)


def refuse(plan: Plan, name: str) -> None:
    """Raise the guard's refusal, if there is one."""
    for problem in refusal(plan, name):
        raise StarlingError(problem.message, hint=problem.hint)


def summary(session: Session, plan: Plan) -> str:
    """What came of it, in a sentence or two."""
    found = [f"{count} {what}" for what, count in counts(session, plan).items() if what != "left"]
    said = ", ".join(found) or "no objects"
    if left := left_behind(session, plan):
        said += f"\nleft, though no longer in the files: {_named(left)}; --prune deletes what is left"
    return said


def counts(session: Session, plan: Plan) -> dict[str, int]:
    """How many objects were created, changed, …; those that weren't touched are unchanged."""
    found = Counter(event.outcome for event in session.events.values())
    found["unchanged"] += plan.unchanged
    found["left"] = len(left_behind(session, plan))
    return {what: count for what, count in found.items() if count}


def left_behind(session: Session, plan: Plan) -> list[ObjectKey]:
    """What the unit had, the files no longer have, and nobody prunes."""
    events = [event.task for event in session.events.values()]
    released = [task for task in (*plan.tasks, *events) if task.action is Action.RELEASE and not session.unit.prune]
    return sorted({task.key for task in released if task.key is not None and task.record and task.record.live})


def show(progress: Progress, news: SyncEvent | UnitSeen) -> None:
    """Show one task done; or how the unit stands that is waited for."""
    if isinstance(news, SyncEvent):
        progress.done(str(news.task.key), news.outcome)
    else:
        progress.wait(news.trouble.message if news.trouble is not None else news.status.message)


def not_ready(session: Session) -> str:
    """Which objects aren't ready and why; else what is known of the unit."""
    unready = {key: its for key, its in session.standing().items() if its.readiness is not Readiness.CURRENT}
    if unready:
        return _named(
            f"{key} is {its.readiness}" + f": {its.message}" * bool(its.message) for key, its in unready.items()
        )
    if session.seen is None:
        return "it wasn't begun"
    trouble = session.seen.trouble
    return trouble.message if trouble is not None else session.seen.status.message or "its operation goes on"


def unit_document(session: Session, status: UnitStatus, plan: Plan, problems: Iterable[Problem]) -> dict[str, Any]:
    """What came of it as JSON."""
    objects = least(its.readiness for its in session.standing().values())
    return {
        "unit": session.unit.id,
        "operation": operation_document(status.operation),
        "readiness": status.readiness if session.seen is not None else objects,
        "removed": status.removed,
        "counts": counts(session, plan),
        "problems": [_problem(problem) for problem in problems],
        "objects": _objects(session, left_behind(session, plan)),
    }


def plan_document(session: Session, plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "unit": session.unit.id,
        "tasks": [_task(task) for task in plan.tasks],
        "unchanged": plan.unchanged,
        "problems": [_problem(problem) for problem in plan.problems],
    }


def described(key: ObjectKey) -> dict[str, Any]:
    """An object's identity as JSON."""
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def operation_document(operation: Operation | None) -> dict[str, Any] | None:
    """An operation as JSON; None if there was none yet."""
    if operation is None:
        return None
    return {
        "phase": operation.phase,
        "revision": operation.revision,
        "startedAt": operation.started_at,
        "finishedAt": operation.finished_at,
        "message": console.in_words(operation.message),
    }


def _objects(session: Session, left: Sequence[ObjectKey]) -> list[dict[str, Any]]:
    found = []
    standing = session.standing()
    for key in sorted({*standing, *session.events}):
        its, event = standing.get(key), session.events.get(key)
        found.append(
            {
                **described(key),
                "outcome": event.outcome if event is not None else "left" if key in left else "unchanged",
                "readiness": its.readiness if its is not None else Readiness.MISSING,
                "message": its.message if its is not None else "",
            }
        )
    return found


def _problem(problem: Problem) -> dict[str, Any]:
    where = {"object": described(problem.key)} if problem.key is not None else {}
    message = console.in_words(problem.message)
    return {"reason": problem.reason, "message": message, "hint": problem.hint, **where}


def _task(task: Task) -> dict[str, Any]:
    where = {"object": described(task.key)} if task.key is not None else {}
    return {"action": task.action, "reason": task.reason, "wave": task.wave, **where}


def _named(things: Iterable[object]) -> str:
    texts = [str(thing) for thing in things]
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return "; ".join(texts[:MOST_NAMED]) + more
