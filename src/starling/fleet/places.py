"""The places that admitted clusters hold, and how they give them up.

    admitted ─► entry is its target ─► acknowledged ─► reported it: succeeded, failed       gives it up
        │ time is up, and it is there               has failed: stays in the record, holds no place
        └ time is up, and it isn't there, and never heard of it: `restore`, until its entry is what it runs again

A cluster that may go elsewhere by now does so, but one on its way to the last good target gets there first. After a
target is tried again, that it has failed counts once its time is up: what a cluster says may be from before.

To leave a cluster ends when it has no entry, and says so or can't be asked. What a cluster says counts only of an entry
with the place's counter: any other may be from before. Nor is a place forgotten whose entry has a lower one, since
whoever has read of the place may still move that: `restore` has the entry written with a counter that forbids it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starling.api.v1alpha1 import Admitted
from starling.fleet.facts import Facts, Member

__all__ = ["Place", "places"]


@dataclass(frozen=True, slots=True)
class Place:
    """An admitted cluster; one that is new or changed has no `admission` until it is given the next."""

    member: Member
    since: datetime
    target: str
    admission: int = 0
    restore: bool = False
    leave: bool = False
    overdue: bool = False
    unbegun: bool = False
    """Time was up before the cluster's entry changed: it is to have it again, if that leaves room."""

    @property
    def admitted(self) -> Admitted:
        """As it is recorded."""
        return Admitted(
            cluster=self.member.name,
            since=self.since,
            target=self.target,
            admission=self.admission,
            leave=self.leave,
            restore=self.restore,
        )

    @property
    def holds(self) -> bool:
        """Whether it keeps others waiting; else it is only kept in mind."""
        return not self.overdue and not self.restore

    @property
    def failed(self) -> bool:
        """Whether the cluster had time enough to get there."""
        return self.overdue and not (self.unbegun or self.leave or self.restore)

    @property
    def written(self) -> bool:
        """Whether the cluster's entry is from this admission, or a later one."""
        return self.member.entry is not None and self.member.admission >= self.admission


def places(
    facts: Facts, members: Mapping[str, Member], wanted: Mapping[str, str | None], timeout: timedelta, now: datetime
) -> dict[str, Place]:
    """The places still taken, by cluster, given where each may go now; one that is gone altogether takes none."""
    found = {}
    for each in facts.admitted:
        if (member := members.get(each.cluster)) is None:
            continue
        moves = not each.leave and not each.restore
        target = (each.target or facts.previous or facts.target) if moves else each.target
        overdue = now - each.since >= timeout
        place = Place(member, each.since, target, each.admission, each.restore, each.leave, overdue)
        if (still := _still(place, facts, wanted.get(member.name), now)) is not None:
            found[each.cluster] = still
    return found


def _still(place: Place, facts: Facts, wanted: str | None, now: datetime) -> Place | None:
    """The place as it is from now on; None once it is given up."""
    member = place.member
    if place.restore and (member.selected or member.entry is not None):
        return None if place.written else place  # without an entry, it waits for its turn to move
    if not member.selected and (place.restore or place.leave):
        return _still_leaving(place)
    if not place.leave and _arrived(place, facts):
        return None
    elsewhere = wanted is not None and place.target not in (wanted, facts.aim, facts.course.last_good)
    if place.leave or (elsewhere and (member.able or place.overdue)):  # it is to do something else
        turns = wanted is not None and member.able and not place.overdue
        return Place(member, now, wanted or "") if turns else _withdrawn(place)
    past = place.target != facts.aim or place.admission <= facts.course.retried_at
    if place.overdue and (past or not (member.selected and member.able)):
        return _withdrawn(place)
    return replace(place, unbegun=place.overdue and (member.entry != place.target or not place.written))


def _still_leaving(place: Place) -> Place | None:
    member = place.member
    if member.entry is None:
        gone = not member.reachable or (member.acknowledged and not member.listed)
        return None if gone else place
    if not place.overdue:
        return place
    # Its time hasn't begun; nor will it, where nothing may be touched.
    return replace(place, unbegun=True) if member.adopted and member.mode == "Active" else _withdrawn(place)


def _withdrawn(place: Place) -> Place | None:
    """A place whose time is up: none, once nobody moves the entry by it any more, and the cluster has heard of that."""
    member = place.member
    unheard = not member.able and not member.acknowledged and bool(member.reported)
    restorable = unheard and member.entry != member.reported
    if member.entry is None or (place.written and not restorable):
        return None
    return replace(place, admission=0, leave=False, restore=True)


def _arrived(place: Place, facts: Facts) -> bool:
    """Whether the cluster says that it is there, or has failed there."""
    member, retried = place.member, place.target == facts.target and facts.course.retried_at > 0
    ends = ("succeeded",) if retried else ("succeeded", "failed")
    return place.written and member.acknowledged and member.reports(place.target, *ends)
