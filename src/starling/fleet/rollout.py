"""Which clusters may move, or be left, now.

`decide` is given the policy, what is recorded of a rollout, and the clusters as seen, possibly a while ago. Its answer
is recorded, on the condition that the record is still the one it was given, before any cluster's entry changes. So the
record alone bounds how many are on their way: a cluster holds a place from its admission until it is seen to have
arrived, with an entry that has that admission's counter. Old views of clusters can delay that, and never hasten it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from starling.api import seconds
from starling.api.v1alpha1 import MOST_ADMITTED, Admitted, Rollout, RolloutPhase, RolloutSummary
from starling.fleet.course import advanced, begun, destination, due, is_stopped
from starling.fleet.facts import Course, Facts, Member
from starling.fleet.places import Place, places
from starling.fleet.stages import Staged
from starling.fleet.standing import Standing, message_of, phase_of
from starling.fleet.windows import is_open, next_change
from starling.objects import digest, short_digest

__all__ = ["Course", "Decision", "Facts", "Member", "decide", "superseded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to record, and what to tell.

    `confirm` is what starling.dev/confirm must say for clusters to be left; empty: nothing waits for it. `gate` is the
    stage that waits for its gate alone. `recheck_after` is the time, in seconds, after which the answer may be another
    though nothing happened.
    """

    admitted: tuple[Admitted, ...]
    admission: int
    course: Course
    summary: RolloutSummary
    phase: RolloutPhase
    message: str
    recheck_after: float | None
    confirm: str
    gate: str


def superseded(policy: Rollout, facts: Facts, members: Sequence[Member]) -> bool:
    """Whether a newer target may take the place of the recorded one, or has to wait until that is through."""
    if policy.supersede == "Now" or not facts.target or facts.ended or facts.failed:
        return True
    return not facts.admitted and not any(member.selected and member.entry == facts.target for member in members)


def decide(policy: Rollout, facts: Facts, members: Sequence[Member], now: datetime) -> Decision:
    """Which clusters are admitted from now on, and where the rollout stands."""
    scene = _Scene(Staged(policy, members), {member.name: member for member in members}, now)
    facts = replace(facts, course=begun(facts, scene.staged, now))
    standing = Standing(scene.staged, facts, scene.places(facts), now)
    course = advanced(facts, scene.staged, standing.tallies, standing.failed, now)
    facts = replace(facts, course=replace(course, last_good=_last_good(facts, course, standing)))
    held = scene.begun_again(scene.places(facts))
    confirm = _confirm(facts, members, held)
    after, admission = _numbered(facts, members, _fitting(held | scene.added(facts, held, may_leave=not confirm)))
    standing = Standing(scene.staged, facts, after, now, confirm)
    return Decision(
        admitted=tuple(place.admitted for place in after.values()),
        admission=admission,
        course=facts.course,
        summary=standing.summary,
        phase=phase_of(standing),
        message=message_of(standing),
        recheck_after=scene.recheck_after(facts, standing),
        confirm=confirm,
        gate=standing.gate,
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a decision is about."""

    staged: Staged
    known: Mapping[str, Member]
    now: datetime
    _wanted: dict[Course, dict[str, str | None]] = field(default_factory=dict)

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=seconds(self.staged.policy.timeout))

    def wanted(self, facts: Facts) -> dict[str, str | None]:
        """Where each cluster may go; worked out once for each course, as there may be thousands."""
        if facts.course not in self._wanted:
            may_update = is_open(self.staged.policy.windows, self.now)
            self._wanted[facts.course] = {
                name: destination(facts, self.staged, member, self.now, may_update=may_update)
                for name, member in self.known.items()
            }
        return self._wanted[facts.course]

    def places(self, facts: Facts) -> dict[str, Place]:
        """The places that are taken."""
        wanted = self.wanted(facts) if facts.admitted else {}
        return places(facts, self.known, wanted, self.timeout, self.now)

    def begun_again(self, held: Mapping[str, Place]) -> dict[str, Place]:
        """The places, with all their time for those that hadn't begun; those that lately held one still find room."""
        room, again = self._room(held), {}
        for name, place in sorted(held.items()):
            stage = self.staged.numbers[name]
            if place.unbegun and room[stage] > 0:
                room[stage] -= 1
                again[name] = Place(place.member, self.now, place.target, leave=place.leave)
        return {**held, **again}

    def added(self, facts: Facts, held: Mapping[str, Place], *, may_leave: bool) -> dict[str, Place]:
        """Those admitted now, by stage and name while there is room; who holds it to move, and is left, keeps it."""
        if is_stopped(facts, self.staged):
            return {}
        kept = sum(not place.failed for place in held.values())
        room, left, wanted = self._room(held), MOST_ADMITTED - kept, self.wanted(facts)
        added: dict[str, Place] = {}
        numbers = self.staged.numbers
        for name in sorted(self.known, key=lambda name: (numbers[name], name)):
            member, target = self.known[name], wanted[name] or ""
            leave = not member.selected
            if not (may_leave and _leaves(member, held) if leave else _moves(member, target, facts, held)):
                continue
            if name not in held or not held[name].holds:
                if room[numbers[name]] <= 0 or (name not in held and left <= 0):
                    continue
                room[numbers[name]] -= 1
                left -= name not in held
            added[name] = Place(member, self.now, target, leave=leave)
        return added

    def recheck_after(self, facts: Facts, standing: Standing) -> float | None:
        """When time alone may change the answer."""
        policy, numbers = self.staged.policy, self.staged.numbers
        moments = [place.since + self.timeout for place in standing.places.values() if place.holds]
        if facts.course.baking_since is not None:
            stage = self.staged.stages[self.staged.number(facts.course.stage)]
            moments.append(facts.course.baking_since + stage.bake)
        if policy.windows and (change := next_change(policy.windows, self.now)) is not None:
            moments.append(change)
        if facts.course.stage_started is not None and seconds(policy.jitter):
            current = self.staged.number(facts.course.stage)
            pending = (name for name, state in standing.states.items() if state == "pending")
            waits = (self.known[name] for name in pending if numbers[name] == current)
            moments += [due(facts, self.staged, member, self.now) for member in waits]
        return min(((each - self.now).total_seconds() for each in moments if each > self.now), default=None)

    def _room(self, held: Mapping[str, Place]) -> list[int]:
        """How many more may be on their way, for each stage."""
        room = [stage.most for stage in self.staged.stages]
        for name, place in held.items():
            room[self.staged.numbers[name]] -= place.holds
        return room


def _moves(member: Member, target: str, facts: Facts, held: Mapping[str, Place]) -> bool:
    place = held.get(member.name)
    free = place is None or (place.restore and member.entry is None)
    return member.able and free and bool(target) and (member.entry != target or facts.tried_again(member))


def _leaves(member: Member, held: Mapping[str, Place]) -> bool:
    place = held.get(member.name)
    untouched = member.mode == "Active" and member.adopted and (place is None or not place.leave)
    return untouched and member.leaves


def _confirm(facts: Facts, members: Sequence[Member], held: Mapping[str, Place]) -> str:
    """What must be confirmed before clusters are left: those that stay, if many are to go; empty if nothing must."""
    stay = sorted(member.name for member in members if member.selected)
    going = sum(member.leaves or (not member.selected and member.name in held) for member in members)
    if going <= 1 or going * 10 <= len(stay) + going:
        return ""
    token = short_digest(digest([facts.salt, stay]))
    return "" if facts.confirmed == token else token


def _fitting(after: Mapping[str, Place]) -> Mapping[str, Place]:
    """As many places as a record holds: those whose time was up longest ago are forgotten first."""
    surplus = len(after) - MOST_ADMITTED
    failed = sorted((name for name, place in after.items() if place.failed), key=lambda name: after[name].since)
    forgotten = set(failed[: max(0, surplus)])
    return {name: place for name, place in after.items() if name not in forgotten}


def _numbered(facts: Facts, members: Sequence[Member], after: Mapping[str, Place]) -> tuple[dict[str, Place], int]:
    """The places by name, and the counter; it goes on from the highest there is, also where a record was lost."""
    highest = max((facts.admission, *(member.admission for member in members)))
    changed = facts.retargeted or any(not place.admission for place in after.values())
    counter = highest + 1 if changed else highest
    numbered = {name: replace(place, admission=place.admission or counter) for name, place in sorted(after.items())}
    return numbered, counter


def _last_good(facts: Facts, course: Course, standing: Standing) -> str:
    """The target that went through last; of a fleet found at work, the one that all of it is at."""
    if course.last_good or facts.admitted or not standing.selected:
        return course.last_good
    entries = {member.entry for member in standing.selected}
    shared = entries.pop() if len(entries) == 1 else None
    if shared == facts.target:  # which is good once it is through
        return ""
    return shared if shared and all(member.state != "failed" for member in standing.selected) else ""
