"""Which clusters of a Module may move to its target, or be left, now.

`decide` is given the policy, what is recorded of the Module, and the clusters as seen, possibly a while ago. Its answer
is recorded, on the condition that the record is still the one it was given, before any cluster's entry changes. So the
record alone bounds how many are on their way: a cluster holds a place from its admission until it is seen to have
arrived, with an entry that has that admission's counter. Old views of clusters can delay that, and never hasten it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starling.api import seconds
from starling.api.v1alpha1 import MOST_ADMITTED, Admitted, ModulePhase, ModuleSummary, Rollout
from starling.fleet.facts import Facts, Member
from starling.fleet.places import Place, places
from starling.fleet.standing import Standing, message_of, phase_of, share, summary_of
from starling.objects import digest, short_digest

__all__ = ["Decision", "Facts", "Member", "decide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to record, and what to tell.

    `confirm` is what starling.dev/confirm must say for clusters to be left; empty: nothing waits for it.
    `recheck_after` is the time, in seconds, after which the answer may be another though nothing happened.
    """

    admitted: tuple[Admitted, ...]
    admission: int
    last_good: str
    summary: ModuleSummary
    phase: ModulePhase
    message: str
    recheck_after: float | None
    confirm: str


def decide(policy: Rollout, facts: Facts, members: Sequence[Member], now: datetime) -> Decision:
    """Which clusters are admitted from now on, and where the rollout stands."""
    known = {member.name: member for member in members}
    timeout = timedelta(seconds=seconds(policy.timeout))
    most = min(max(1, share(policy.max_concurrent, sum(member.selected for member in members))), MOST_ADMITTED)
    held = _begun_again(places(facts, known, timeout, now), most, now)
    confirm = _confirm(facts, members, held)
    standing = Standing(policy, facts, members, held, confirm)
    added = {} if standing.stopped else _added(facts, known, held, most, may_leave=not confirm, now=now)
    after, admission = _numbered(facts, members, held | added)
    standing = Standing(policy, facts, members, after, confirm)
    return Decision(
        admitted=tuple(place.admitted for place in after.values()),
        admission=admission,
        last_good=_last_good(facts, standing),
        summary=summary_of(standing),
        phase=phase_of(standing),
        message=message_of(standing),
        recheck_after=_recheck_after(after, timeout, now),
        confirm=confirm,
    )


def _begun_again(held: Mapping[str, Place], most: int, now: datetime) -> dict[str, Place]:
    """The places, with all their time for those that hadn't begun; those that lately held one still find room."""
    room = max(0, most - sum(place.holds for place in held.values()))
    unbegun = [place for _, place in sorted(held.items()) if place.unbegun][:room]
    return {**held, **{place.member.name: Place(place.member, now, leave=place.leave) for place in unbegun}}


def _added(
    facts: Facts,
    members: Mapping[str, Member],
    held: Mapping[str, Place],
    most: int,
    *,
    may_leave: bool,
    now: datetime,
) -> dict[str, Place]:
    """Those admitted now, by name as long as there is room; one that holds it to move, and is to be left, keeps it."""
    room = min(most - sum(place.holds for place in held.values()), MOST_ADMITTED - len(held))
    added = {}
    for name, member in sorted(members.items()):
        leave = not member.selected
        if not (may_leave and _leaves(member, held) if leave else _moves(member, facts, held)):
            continue
        if name not in held or not held[name].holds:
            if room <= 0:
                continue
            room -= 1
        added[name] = Place(member, now, leave=leave)
    return added


def _moves(member: Member, facts: Facts, held: Mapping[str, Place]) -> bool:
    place = held.get(member.name)
    free = place is None or (place.restore and member.entry is None)
    return member.able and free and bool(facts.target) and member.entry != facts.target


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


def _numbered(facts: Facts, members: Sequence[Member], after: Mapping[str, Place]) -> tuple[dict[str, Place], int]:
    """The places by name, and the counter; it goes on from the highest there is, also where a record was lost."""
    highest = max((facts.admission, *(member.admission for member in members)))
    changed = facts.retargeted or any(not place.admission for place in after.values())
    counter = highest + 1 if changed else highest
    numbered = {name: replace(place, admission=place.admission or counter) for name, place in sorted(after.items())}
    return numbered, counter


def _last_good(facts: Facts, standing: Standing) -> str:
    """The target that all reached last; of a fleet found at work, the one that all of it is at."""
    able = [member for member in standing.selected if member.able]
    summary = summary_of(standing)
    if able and not summary.pending and all(standing.states[member.name] == "succeeded" for member in able):
        return facts.target
    if facts.last_good or facts.admitted or not standing.selected:
        return facts.last_good
    entries = {member.entry for member in standing.selected}
    shared = entries.pop() if len(entries) == 1 else None
    return shared if shared and all(member.state != "failed" for member in standing.selected) else ""


def _recheck_after(after: Mapping[str, Place], timeout: timedelta, now: datetime) -> float | None:
    waits = ((place.since + timeout - now).total_seconds() for place in after.values() if place.holds)
    return min(waits, default=None)
