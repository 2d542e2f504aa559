"""Where a rollout stands: in numbers, in one word, and in a line for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal

from starling.api.v1alpha1 import RolloutFailure, RolloutPhase, RolloutSummary
from starling.fleet.course import Tally, asks, due, free
from starling.fleet.facts import Facts, Member
from starling.fleet.places import Place
from starling.fleet.stages import Stage, Staged
from starling.fleet.windows import is_open, next_change

__all__ = ["Standing", "message_of", "phase_of"]

MemberState = Literal["pending", "updating", "succeeded", "failed", "unreachable", "held"]
NAMED = 3
"""How many clusters a message names."""


@dataclass(frozen=True)
class Standing:
    """All that is known of a rollout; `confirm` is what someone has to confirm before clusters are left.

    What follows from it is worked out once: there may be thousands of clusters.
    """

    staged: Staged
    facts: Facts
    places: Mapping[str, Place]
    now: datetime
    confirm: str = ""

    @cached_property
    def selected(self) -> list[Member]:
        """The clusters that it goes to."""
        return [member for member in self.staged.members if member.selected]

    @cached_property
    def leaving(self) -> list[Member]:
        """Those that it no longer goes to, and that have it still."""
        members = self.staged.members
        return [member for member in members if member.leaves or (not member.selected and member.name in self.places)]

    @cached_property
    def failed(self) -> list[str]:
        """The names of those that failed at what they are to have."""
        return sorted(name for name, state in self.states.items() if state == "failed")

    @cached_property
    def states(self) -> dict[str, MemberState]:
        """How far each cluster is that it goes to."""
        return {member.name: self._state(member) for member in self.selected}

    @cached_property
    def tallies(self) -> list[Tally]:
        """How each stage stands."""
        counts: list[Counter[str]] = [Counter() for _ in self.staged.stages]
        for name, state in self.states.items():
            counts[self.staged.numbers[name]][state] += 1
        for name, place in self.places.items():
            counts[self.staged.numbers[name]]["holds"] += (place.holds or place.unbegun) and not place.leave
        return [Tally(**count) for count in counts]

    @cached_property
    def summary(self) -> RolloutSummary:
        """How many clusters are in which state; all but those that are being left add up to the total."""
        counts = Counter[str](self.states.values())
        total = counts.total()
        ready = f"{counts['succeeded']}/{total}"
        return RolloutSummary(total=total, leaving=len(self.leaving), ready=ready, **counts)

    @property
    def stage(self) -> Stage:
        """The stage whose turn it is."""
        return self.staged.stages[self.staged.number(self.facts.course.stage)]

    @property
    def waits(self) -> bool:
        """Whether the stage has something to do and isn't free to start."""
        begun = self.facts.failed or self.facts.ended or self.facts.course.stage_started is not None
        tally = self.tallies[self.stage.number]
        waiting = tally.pending > 0 or asks(self.facts.course, self.stage, tally)
        return bool(self.facts.target) and not begun and waiting

    @property
    def gate(self) -> str:
        """The stage that waits for nothing but its gate."""
        stage, asked = self.stage, free(self.facts, self.staged, self.stage, self.now, but_for_gate=True)
        return stage.name if self.waits and asked and not free(self.facts, self.staged, stage, self.now) else ""

    @property
    def shut(self) -> bool:
        """Whether it is a time at which no update may start."""
        return not is_open(self.staged.policy.windows, self.now)

    def _state(self, member: Member) -> MemberState:
        place, aim = self.places.get(member.name), self.facts.aim
        told = place is None or 0 < place.admission <= member.admission  # a place without a counter is news to all
        again = self.facts.tried_again(member)
        if told and member.reports(aim, "succeeded"):
            return "succeeded"
        if place is None and member.reports(aim, "failed") and not again:
            return "failed"
        if not member.reachable:
            return "unreachable"
        if place is not None and not place.restore:
            return "failed" if place.failed and place.target == aim else "updating"
        if member.mode != "Active":
            return "held"
        return "updating" if aim and member.entry == aim and not again else "pending"


def phase_of(standing: Standing) -> RolloutPhase:
    """Where it stands, in one word."""
    summary, facts = standing.summary, standing.facts
    if facts.suspended:
        return "Suspended"
    if not facts.target or not (summary.total or summary.leaving):
        return "Pending"
    if facts.failed and not facts.course.rollback_to:
        return "Failed"
    moves = any(place.holds for place in standing.places.values())
    busy = bool(summary.pending or summary.updating or moves)
    if standing.confirm or (standing.staged.policy.paused and (busy or summary.leaving)):
        return "Waiting"
    baking = facts.course.baking_since is not None
    return _at_work(standing, moves=moves) if busy or baking else _at_rest(standing)


def _at_work(standing: Standing, *, moves: bool) -> RolloutPhase:
    if standing.facts.failed:
        return "RollingBack"
    if not moves and _idle(standing):
        return "Baking" if standing.facts.course.baking_since is not None else "Waiting"
    return "Progressing"


def _idle(standing: Standing) -> bool:
    """Whether what has something to do doesn't do it."""
    pending = standing.summary.pending
    return standing.facts.course.baking_since is not None or standing.waits or (standing.shut and pending > 0)


def _at_rest(standing: Standing) -> RolloutPhase:
    summary = standing.summary
    if standing.facts.failed:
        return "RolledBack"
    if standing.waits:
        return "Waiting"
    if summary.failed:
        return "Degraded"
    return "Succeeded" if summary.succeeded or not summary.total else "Waiting"  # for clusters that can take it


def message_of(standing: Standing) -> str:
    """Where it stands and why it waits, in one line."""
    summary = standing.summary
    aim, course = standing.facts.aim, standing.facts.course
    back = "back at the last good target" if aim == course.last_good else "at the target they return to"
    where = back if aim != standing.facts.target else "at the target"
    parts = [f"{summary.succeeded} of {summary.total} clusters are {where}"]
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
    facts, policy = standing.facts, standing.staged.policy
    reasons = []
    if not facts.target:
        reasons.append("no target yet")
    elif not standing.selected and not standing.leaving:
        reasons.append("its selector picks no cluster")
    if facts.suspended:
        reasons.append("suspended")
    elif policy.paused:
        reasons.append("paused by its policy")
    elif facts.failed:
        reasons.append(_failed(standing))
    elif not facts.ended:
        reasons += _in_stage(standing)
    elif standing.shut and standing.summary.pending:
        reasons.append(_shut(standing))
    if standing.confirm:
        names = _named(sorted(member.name for member in standing.leaving))
        reasons.append(f"to leave {names}, set the annotation starling.dev/confirm: {standing.confirm}")
    return reasons


def _failed(standing: Standing) -> str:
    facts, again = standing.facts, f"{_command(standing, 'retry')} tries it again"
    failure = facts.course.failure(facts.target)
    if facts.course.rollback_to:
        return f"the newest target {_fate(failure)}; {again}"
    if failure is not None and failure.by:
        return f"the newest target {_fate(failure)}, and what to return to isn't known any more; {again}"
    lacking = ", and there is no last good one to return to" if standing.staged.policy.on_failure == "Rollback" else ""
    said = f": {failure.message}" if failure is not None and failure.message else ""
    return f"stopped, since more than {standing.staged.policy.max_failures} of a stage failed{lacking}{said}; {again}"


def _fate(failure: RolloutFailure | None) -> str:
    """What became of a target that clusters return from."""
    if failure is None:
        return "failed or was undone"
    if failure.by:
        return f"was undone by {failure.by}"
    where = f" in stage {failure.stage}" * bool(failure.stage)
    return f"failed{where} on {_named(failure.clusters)}" + f": {failure.message}" * bool(failure.message)


def _command(standing: Standing, verb: str) -> str:
    return " ".join(each for each in ("starling rollout", verb, standing.facts.called) if each)


def _in_stage(standing: Standing) -> list[str]:
    """What the stage is at, if it is one of several, and what it waits for."""
    facts, stage, now = standing.facts, standing.stage, standing.now
    named = [f"stage {stage.name}"] if len(standing.staged.stages) > 1 else []
    if facts.course.baking_since is not None:
        until = facts.course.baking_since + stage.bake
        baking = f"bakes until {until:%Y-%m-%d %H:%M:%S} UTC" if until > now else "waits for all to be well"
        return [" ".join((*named, baking))]
    if not standing.waits:
        return [*named, *([_shut(standing)] if standing.shut and standing.summary.pending else _lot(standing))]
    if stage.manual and not facts.course.approved(stage.name):
        return [f"stage {stage.name} waits for approval: {_command(standing, 'approve')}"]
    if standing.shut:
        return [*named, _shut(standing)]
    return [f"stage {stage.name} waits for its gate"] if standing.gate else named


def _lot(standing: Standing) -> list[str]:
    """That those who wait do so by the jitter."""
    if standing.facts.course.stage_started is None or any(place.holds for place in standing.places.values()):
        return []
    numbers, current = standing.staged.numbers, standing.stage.number
    pending = [m for m in standing.selected if standing.states[m.name] == "pending" and numbers[m.name] == current]
    first = min((due(standing.facts, standing.staged, member, standing.now) for member in pending), default=None)
    return [f"the next starts at {first:%H:%M:%S} UTC"] if first is not None and first > standing.now else []


def _shut(standing: Standing) -> str:
    opens = next_change(standing.staged.policy.windows, standing.now)
    return f"no window is open until {opens:%Y-%m-%d %H:%M} {opens:%Z}" if opens is not None else "no window ever opens"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
