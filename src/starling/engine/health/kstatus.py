"""kstatus: the rules by which kubernetes-sigs/cli-utils tells an object's status, and its words for why.

In this order: an object on its way out is Terminating; one whose controller hasn't seen the latest generation is
InProgress; the conditions Reconciling and Stalled decide by themselves; then the built-in kinds have rules of their
own (`kstatus_kinds`); any other kind goes by its Ready condition, and is Current if it has none.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starling.engine.health.kstatus_kinds import KINDS, current, failed, in_progress
from starling.engine.health.readiness import Health, Readiness
from starling.engine.health.subject import (
    Condition,
    Malformed,
    Subject,
    conditions_of,
    mapping,
    must_be,
    text,
    whole_or_none,
)

__all__ = ["assess"]


def assess(obj: Mapping[str, Any], now: datetime) -> Health:
    """An object's health by its apiVersion, kind, metadata, spec and status; `now` is aware of its timezone.

    Never raises for what is in the object: Unknown, with why, where a field that decides is malformed.
    """
    try:
        return _assess(obj, now)
    except Malformed as problem:
        return Health(Readiness.UNKNOWN, str(problem))


def _assess(obj: Mapping[str, Any], now: datetime) -> Health:
    metadata = _section(obj, "metadata")
    if must_be(str, metadata.get("deletionTimestamp", ""), "metadata.deletionTimestamp"):
        return Health(Readiness.TERMINATING, "Resource scheduled for deletion")
    kind = text(obj, "kind")
    status = _section(obj, "status")
    if unseen := _unseen(kind, metadata, status):
        return unseen
    conditions = conditions_of(status)
    if decided := _standard_conditions(conditions):
        return decided
    rules = KINDS.get((text(obj, "apiVersion").rpartition("/")[0], kind))
    if rules is None:
        return _ready_condition(conditions) or current("Resource is current")
    return rules(Subject(kind, metadata, mapping(obj, "spec"), status, conditions, now))


def _section(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return {} if found is None else must_be(dict, found, name)


def _unseen(kind: str, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> Health | None:
    """InProgress if the controller says that it has seen another generation than the latest."""
    generation = whole_or_none(metadata, "generation", "metadata.generation")
    if generation is None:
        return None
    observed = whole_or_none(status, "observedGeneration", "status.observedGeneration")
    if observed is None or observed == generation:
        return None
    return in_progress(f"{kind} generation is {generation}, but latest observed generation is {observed}")


def _standard_conditions(conditions: tuple[Condition, ...]) -> Health | None:
    for condition in conditions:
        if condition.type == "Reconciling" and condition.holds:
            return in_progress(condition.message)
        if condition.type == "Stalled" and condition.holds:
            return failed(condition.message)
    return None


def _ready_condition(conditions: tuple[Condition, ...]) -> Health | None:
    for condition in conditions:
        if condition.type == "Ready" and condition.status in {"True", "False", "Unknown"}:
            return current("Resource is Ready") if condition.holds else in_progress(condition.message)
    return None
