"""Where a rollout stands: in numbers, in one word, and in a line for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from starling.api.v1alpha1 import ModulePhase, ModuleSummary, Rollout
from starling.fleet.facts import Facts, Member
from starling.fleet.places import Place

__all__ = ["Standing", "message_of", "phase_of", "share", "summary_of"]

MemberState = Literal["pending", "updating", "succeeded", "failed", "unreachable", "held"]
NAMED = 3
"""How many clusters a message names."""


@dataclass(frozen=True)
class Standing:
    """All that is known of a rollout; `confirm` is what someone has to confirm before clusters are left.

    What follows from it is worked out once: there may be thousands of clusters.
    """

    policy: Rollout
    facts: Facts
    members: Sequence[Member]
    places: Mapping[str, Place]
    confirm: str

    @cached_property
    def selected(self) -> list[Member]:
        """The clusters that the Module goes to."""
        return [member for member in self.members if member.selected]

    @cached_property
    def leaving(self) -> list[Member]:
        """Those that it no longer goes to, and that have it still."""
        return [
            member for member in self.members if member.leaves or (not member.selected and member.name in self.places)
        ]

    @cached_property
    def failed(self) -> list[str]:
        """The names of those that failed at the target."""
        return sorted(name for name, state in self.states.items() if state == "failed")

    @cached_property
    def states(self) -> dict[str, MemberState]:
        """How far each cluster is that the Module goes to."""
        return {member.name: self._state(member) for member in self.selected}

    @property
    def stopped_by_failures(self) -> bool:
        """Whether more have failed than may."""
        most = share(self.policy.max_failures, len(self.selected))
        return self.policy.on_failure != "Continue" and len(self.failed) > most

    @property
    def stopped(self) -> bool:
        """Whether no cluster is admitted for now."""
        return self.facts.suspended or self.policy.paused or self.stopped_by_failures

    def _state(self, member: Member) -> MemberState:
        place, target = self.places.get(member.name), self.facts.target
        told = place is None or member.admission >= place.admission
        if told and member.reports(target, "succeeded"):
            return "succeeded"
        if place is None and member.reports(target, "failed"):
            return "failed"
        if not member.reachable:
            return "unreachable"
        if place is not None and not place.restore:
            return "failed" if place.failed else "updating"
        if member.mode != "Active":
            return "held"
        return "updating" if target and member.entry == target else "pending"


def share(number: int | str, of: int) -> int:
    """How many of a set a number, or a percentage rounded down, is."""
    return number if isinstance(number, int) else of * int(number.removesuffix("%")) // 100


def summary_of(standing: Standing) -> ModuleSummary:
    """How many clusters are in which state; all but those that are being left add up to the total."""
    counts = Counter[str](standing.states.values())
    total = counts.total()
    ready = f"{counts['succeeded']}/{total}"
    return ModuleSummary(total=total, leaving=len(standing.leaving), ready=ready, **counts)


def phase_of(standing: Standing) -> ModulePhase:
    """Where it stands, in one word."""
    summary = summary_of(standing)
    if standing.facts.suspended:
        return "Suspended"
    if not standing.facts.target or not (summary.total or summary.leaving):
        return "Pending"
    if standing.stopped_by_failures:
        return "Degraded"
    waits = any(place.holds for place in standing.places.values())
    busy = bool(summary.pending or summary.updating or waits)
    if standing.confirm or (standing.policy.paused and (busy or summary.leaving)):
        return "Waiting"
    return "Progressing" if busy else _at_rest(summary)


def _at_rest(summary: ModuleSummary) -> ModulePhase:
    if summary.failed:
        return "Degraded"
    return "Succeeded" if summary.succeeded or not summary.total else "Waiting"  # for clusters that can take it


def message_of(standing: Standing) -> str:
    """Where it stands and why it waits, in one line."""
    summary = summary_of(standing)
    parts = [f"{summary.succeeded} of {summary.total} clusters are at the target"]
    for number, what in (
        (summary.updating, "updating"),
        (summary.pending, "pending"),
        (summary.unreachable, "unreachable"),
        (summary.held, "held"),
        (summary.leaving, "to be left"),
    ):
        parts += [f"{number} {what}"] if number else []
    if standing.failed:
        parts.append(f"{summary.failed} failed ({_named(standing.failed)})")
    return "; ".join((", ".join(parts), *_why(standing)))


def _why(standing: Standing) -> list[str]:
    """Why it doesn't go on."""
    reasons = []
    if not standing.facts.target:
        reasons.append("no target yet")
    if standing.facts.suspended:
        reasons.append("suspended")
    elif standing.policy.paused:
        reasons.append("paused by its policy")
    elif standing.stopped_by_failures:
        reasons.append(f"stopped, since more than {standing.policy.max_failures} failed")
    if standing.confirm:
        names = _named(sorted(member.name for member in standing.leaving))
        reasons.append(f"to leave {names}, set the annotation starling.dev/confirm: {standing.confirm}")
    return reasons


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
