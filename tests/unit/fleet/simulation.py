"""A hub, its clusters and a clock, in virtual time: all that may happen around `decide` and `assemble`, at random.

The hub is what survives: one Module's record, and for each cluster a ProxyAssemblage. Whoever decides or assembles may
have read these up to LATE seconds ago; a record is written only onto the one that was read. Clusters take their entry
in, tell, work and tell again, each after a while; they come and go, are cut off, relabelled, cordoned.

`check` is called after every step. What is truly on its way is counted here, from what was written and told, not from
what the code under test believes.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec

from starling.api import seconds
from starling.api.v1alpha1 import Admitted, Entry, Rollout
from starling.fleet import Claim, Decision, Facts, Member, assemble, decide
from tests.unit.fleet.simulated import APP, FOREIGN, Record, SimCluster, entry

Seen = TypeVar("Seen")

LATE: Final = timedelta(minutes=5)
"""How old what someone acts on may be."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A decision that isn't written yet, and what it was made from."""

    policy: Rollout
    record: Record
    facts: Facts
    members: list[Member]
    decision: Decision


@dataclass(slots=True)
class World:
    """Everything; `failing` is how likely a cluster fails at a target, `chance` where all that is random comes from."""

    policy: Rollout
    size: int
    chance: random.Random
    failing: float = 0.0
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    target: str = "t1:0"
    targets: list[str] = field(default_factory=lambda: ["t1:0"])
    forgotten: set[str] = field(default_factory=set)
    """Targets of which nobody knows any more what they stand for."""
    specs: int = 1
    """How often the Module's spec has changed."""
    suspended: bool = False
    confirmed: str = ""
    asked: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    """What was to be confirmed: of which spec, that which clusters stay."""
    record: Record = field(default_factory=Record)
    records: deque[tuple[datetime, Record]] = field(default_factory=deque)
    """Those that were, and until when."""
    looks: deque[tuple[datetime, list[Member]]] = field(default_factory=deque)
    """All clusters as they were, and when."""
    undecided: list[Thought] = field(default_factory=list)
    clusters: dict[str, SimCluster] = field(default_factory=dict)
    born: int = 0
    most: int = 1
    """The most that were ever allowed to be on their way."""
    last: Decision | None = None

    def __post_init__(self) -> None:
        for _ in range(self.size):
            self.add_cluster()

    # The hub

    def facts(self) -> Facts:
        record = self.record
        return Facts(
            target=self.target,
            previous=record.target,
            last_good=record.last_good,
            admission=record.admission,
            admitted=record.admitted,
            confirmed=self.confirmed,
            salt=str(self.specs),
            suspended=self.suspended,
        )

    def look(self, *, stale: bool) -> list[Member]:
        """The clusters that matter to the record, as they are now or were before."""
        self.looks.append((self.now, [cluster.seen() for cluster in self.clusters.values()]))
        seen, named = self.looks[-1][1], self.record.names
        if stale:  # who has seen a cluster doesn't forget that it is there
            there = named.keys() & self.clusters.keys()
            seen = self.chance.choice([look for look in self.recent(self.looks) if there <= {m.name for m in look}])
        return [m for m in seen if m.selected or m.entry is not None or m.listed or m.name in named]

    def recent(self, past: deque[tuple[datetime, Seen]]) -> list[Seen]:
        """What may still be taken for the present."""
        while past and past[0][0] < self.now - LATE:
            past.popleft()
        return [each for _, each in past]

    def think(self, *, stale: bool = True) -> None:
        """Someone reads the record and the clusters, these perhaps as they were before, and decides."""
        members, facts = self.look(stale=stale), self.facts()
        decision = decide(self.policy, facts, members, self.now)
        self.undecided.append(Thought(self.policy, self.record, facts, members, decision))

    def write(self) -> None:
        """Someone who has decided writes it down, unless the record is another by now."""
        if not self.undecided:
            return
        thought = self.undecided.pop(self.chance.randrange(len(self.undecided)))
        record, decision = thought.record, thought.decision
        if record != self.record:
            return
        after = Record(record.version, thought.facts.target, decision.last_good, decision.admission, decision.admitted)
        self._check_decision(thought)
        if after != record:
            self._excuse(after, {member.name for member in thought.members if member.entry is None})
            self.records.append((self.now, record))
            self.record = replace(after, version=record.version + 1)
        if decision.confirm:
            stay = frozenset(member.name for member in thought.members if member.selected)
            self.asked[decision.confirm] = (thought.facts.salt, stay)
        self.last = decision

    def compile(self, cluster: SimCluster, *, stale: bool = True) -> None:
        """The assembler compiles one cluster, from the record that is there or one that was."""
        if not cluster.adopted or cluster.mode != "Active":
            return
        record = self.chance.choice([*self.recent(self.records), self.record]) if stale else self.record
        place = record.names.get(cluster.name)
        claim = Claim(
            module=APP,
            target=record.target,
            admission=record.admission,
            admitted=place.admission if place is not None else None,
            restore=place is not None and place.restore,
            leave=place is not None and place.leave,
            reported=cluster.reported,
            selected=cluster.labelled,
            make=lambda target: entry(APP, target) if target not in self.forgotten else None,
        )
        before, entries = cluster.entry, assemble(cluster.entries, [claim])
        if entries == cluster.entries:
            return
        cluster.entries, cluster.generation = entries, cluster.generation + 1
        self._check_entry(cluster, before, place)
        after = cluster.entry
        if (after and after.target) != (before and before.target):
            # One that is to be restored had its time. And where there is no entry, nothing says who has read more of
            # the record: who has read less may give a cluster its first entry when it has no place any more, and who
            # has read a little more then moves that, until it has a place again.
            now = self.record.names.get(cluster.name)
            cluster.overlooked = cluster.overlooked or (before is None and now is None)
            cluster.moving, cluster.excused = True, now.restore if now is not None else cluster.overlooked

    def restart(self) -> None:
        """The controller dies, and what wasn't written is forgotten; who takes over may have read it all long ago."""
        self.undecided.clear()

    # The world

    def any_cluster(self) -> SimCluster:
        return self.clusters[self.chance.choice(list(self.clusters))]

    def add_cluster(self) -> None:
        """One that is new, or one that has run for a while and isn't adopted yet."""
        cluster = SimCluster(f"c{self.born:04}")
        self.clusters[cluster.name] = cluster
        self.born += 1
        if self.chance.random() < 0.3:
            target = self.chance.choice([*self.targets, "t1:elsewhere"])
            cluster.adopted, cluster.imported = False, entry(APP, target, self.chance.choice((0, 50)))
            cluster.has, cluster.doing = target, "succeeded"

    def remove_cluster(self) -> None:
        if len(self.clusters) > 3:
            del self.clusters[self.any_cluster().name]

    def new_target(self) -> None:
        self.target, self.specs = f"t1:{len(self.targets)}", self.specs + 1
        self.targets.append(self.target)

    def revert(self) -> None:
        """An earlier target is wanted again."""
        self.target, self.specs = self.chance.choice(self.targets[-3:]), self.specs + 1
        self.forgotten.discard(self.target)

    def forget(self) -> None:
        target = self.chance.choice(self.targets)
        if target not in (self.target, self.record.target):
            self.forgotten.add(target)

    def finish(self, cluster: SimCluster) -> None:
        """What the cluster was at is done, one way or the other; what is done may need doing again for a while."""
        if cluster.doing == "updating":
            cluster.doing = "failed" if self.chance.random() < self.failing else "succeeded"
        elif cluster.doing == "succeeded" and self.chance.random() < 0.05:
            cluster.doing = "updating"

    def relabel(self, cluster: SimCluster) -> None:
        cluster.labelled = not cluster.labelled

    def cut(self, cluster: SimCluster) -> None:
        cluster.cut_off = not cluster.cut_off

    def notice(self, cluster: SimCluster) -> None:
        cluster.known_cut_off = cluster.cut_off

    def change_mode(self, cluster: SimCluster) -> None:
        cluster.mode = self.chance.choice(("Active", "Active", "Cordoned", "Frozen"))

    def confirm(self) -> None:
        if self.last is not None and self.last.confirm:
            self.confirmed = self.last.confirm

    def suspend(self) -> None:
        self.suspended = self.chance.random() < 0.3

    def pause(self) -> None:
        self.policy = msgspec.structs.replace(self.policy, paused=self.chance.random() < 0.3)

    def resume(self) -> None:
        """People let it go on."""
        self.suspended, self.policy = False, msgspec.structs.replace(self.policy, paused=False)

    def exchange(self, cluster: SimCluster) -> None:
        """One of what passes between a cluster and the hub, if anything can."""
        if not cluster.cut_off:
            self.chance.choice((cluster.take, cluster.tell))()

    def step(self) -> None:
        """Something happens."""
        self.now += timedelta(seconds=self.chance.choice((0, 1, 1, 5, 20)))
        often: tuple[Callable[[], None], ...] = (self.think, self.write)
        each: tuple[Callable[[SimCluster], None], ...] = (self.compile, self.exchange, self.exchange, self.finish)
        seldom: tuple[Callable[[], None], ...] = (
            self.new_target,
            self.revert,
            self.revert,
            self.forget,
            self.pause,
            self.add_cluster,
            self.remove_cluster,
            self.restart,
            self.confirm,
            self.suspend,
            lambda: self.relabel(self.any_cluster()),
            lambda: self.relabel(self.any_cluster()),
            lambda: self.cut(self.any_cluster()),
            lambda: self.change_mode(self.any_cluster()),
            lambda: self.any_cluster().adopt(),
        )
        self.chance.choice(often)()
        for act in each:
            for name in self.chance.sample(list(self.clusters), k=max(1, len(self.clusters) // 4)):
                act(self.clusters[name])
        for name in self.chance.sample(list(self.clusters), k=2):
            self.notice(self.clusters[name])
        if self.chance.random() < 0.3:
            self.chance.choice(seldom)()
        self.check()

    def settle(self) -> int:
        """Nothing new happens any more: how many rounds it takes until nothing changes."""
        self.restart()
        for round_ in range(50 * len(self.clusters) + 200):
            before = (self.record, [replace(cluster) for cluster in self.clusters.values()])
            for cluster in self.clusters.values():
                self.notice(cluster)
            self.think(stale=False)
            self.write()
            for cluster in self.clusters.values():
                self.compile(cluster, stale=False)
                if not cluster.cut_off:
                    cluster.take()
                    cluster.tell()
                if cluster.doing == "updating":
                    self.finish(cluster)
                    if not cluster.cut_off:
                        cluster.tell()
            self.check()
            assert self.last is not None
            after = (self.record, [replace(cluster) for cluster in self.clusters.values()])
            if before == after:
                if self.last.recheck_after is None:
                    return round_
                self.now += timedelta(seconds=max(1.0, self.last.recheck_after))
            self.now += timedelta(seconds=1)
        raise AssertionError(f"it never comes to rest: {self.last}")

    # What must hold

    def bound(self, selected: int) -> int:
        most = self.policy.max_concurrent
        number = most if isinstance(most, int) else selected * int(most[:-1]) // 100
        return max(1, min(number, 200))

    def check(self) -> None:
        """No more on their way than may be, and each of these on record."""
        moving = {c.name for c in self.clusters.values() if c.moving and not c.excused}
        assert moving <= set(self.record.names), f"moving without a place: {moving - set(self.record.names)}"
        assert len(moving) <= self.most, f"{len(moving)} on their way, {self.most} may be"
        for cluster in self.clusters.values():
            assert FOREIGN in cluster.entries, f"{cluster.name} lost what nobody claims"

    def overdue(self, place: Admitted) -> bool:
        return self.now - place.since >= timedelta(seconds=seconds(self.policy.timeout))

    def _check_decision(self, thought: Thought) -> None:
        """What is admitted anew fits in, has a counter that tells so, and may be left."""
        members, decision, record = thought.members, thought.decision, thought.record
        names = [each.cluster for each in decision.admitted]
        assert len(set(names)) == len(names) <= 200
        assert decision.admission >= record.admission
        summary = decision.summary
        counts = (summary.pending, summary.updating, summary.succeeded, summary.failed)
        assert sum(counts) + summary.unreachable + summary.held == summary.total == sum(m.selected for m in members)
        bound = self.bound(summary.total)
        self.most = max(self.most, bound)
        added = [each for each in decision.admitted if each.cluster not in record.names]
        if added:
            assert sum(not each.restore and not self.overdue(each) for each in decision.admitted) <= bound
            assert not thought.policy.paused
        changed = [each for each in decision.admitted if each not in record.admitted]
        if changed:
            assert decision.admission > max((record.admission, *(m.admission for m in members)))
            assert all(each.admission == decision.admission for each in changed)
        leaving = [each for each in decision.admitted if each.leave]
        if any(each.cluster not in record.names or not record.names[each.cluster].leave for each in leaving):
            seen = {member.name: member for member in members}
            going = sum(m.leaves or (not m.selected and m.name in names) for m in members)
            few = going <= max(1, (summary.total + going) / 10)
            stay = frozenset(member.name for member in members if member.selected)
            confirmed = self.asked.get(thought.facts.confirmed) == (thought.facts.salt, stay)
            assert few or confirmed, f"{going} of {summary.total + going} leave, and nobody said they may"
            assert not any(seen[each.cluster].selected for each in leaving)

    def _check_entry(self, cluster: SimCluster, before: Entry | None, place: Admitted | None) -> None:
        """An entry came, went or moved, and was allowed to."""
        after = cluster.entry
        if after is None:
            assert not cluster.labelled, f"{cluster.name} lost an entry that it is to have"
            assert place is not None, f"{cluster.name} lost an entry without being admitted to"
            assert place.leave, f"{cluster.name} lost an entry though it was admitted to move"
        elif before is None:
            assert place is not None, f"{cluster.name} got an entry without being admitted"
        else:
            assert after.admission >= before.admission
            assert after.target == before.target or place is not None, f"{cluster.name} moved unadmitted"

    def _excuse(self, after: Record, without: set[str]) -> None:
        """Those that lose their place before they have told must have had their time, or be nobody's concern now."""
        for name, place in self.record.names.items():
            cluster = self.clusters.get(name)
            if cluster is None:
                continue
            cluster.overlooked = name not in after.names and name in without and cluster.entry is not None
            if not cluster.moving:
                continue
            if name not in after.names:
                gone = place.leave and (cluster.known_cut_off or name in without)
                assert self.overdue(place) or place.restore or gone, f"{name} lost its place"
                cluster.excused = True
            elif self.overdue(place):
                cluster.excused = cluster.excused or after.names[name].since == place.since
