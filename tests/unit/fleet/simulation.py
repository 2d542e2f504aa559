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

from starling.api import seconds
from starling.api.v1alpha1 import Admitted, ClusterMode, Entry, ExactGit, Rollout, SourceReference
from starling.fleet import Claim, Decision, Facts, Member, assemble, decide

Seen = TypeVar("Seen")

APP: Final = "app"
SOURCE: Final = SourceReference(git=ExactGit(url="https://git.test/app.git", commit="a" * 40))
KEPT_REVISIONS: Final = 10
LATE: Final = timedelta(seconds=15)
"""How old what someone acts on may be: less than a rollout's timeout, and what an old leader is stopped by."""


def entry(name: str, target: str, admission: int = 0) -> Entry:
    """An entry of the cluster; which one doesn't matter."""
    return Entry(name=name, unit=f"test/default/Module.{name}@c", target=target, admission=admission, source=SOURCE)


FOREIGN: Final = entry("foreign", "t1:foreign", 7)
"""What a cluster runs besides, of no Module that is known here."""


@dataclass(slots=True)
class SimCluster:
    """One cluster: what the hub holds of it, and, from `has` on, what is so there and the hub is told later."""

    name: str
    labelled: bool = True
    mode: ClusterMode = "Active"
    cut_off: bool = False
    known_cut_off: bool = False
    entries: tuple[Entry, ...] = (FOREIGN,)
    generation: int = 1
    observed: int = 1
    reported: str = ""
    state: str = ""
    has: str | None = None
    taken: int = 1
    doing: str = ""
    moving: bool = False
    """Its entry was moved, and the hub hasn't heard yet that it got there."""
    excused: bool = False
    """… and its time was up."""
    given_up: datetime | None = None
    """When it lost its place without having moved, since its time was up."""

    @property
    def entry(self) -> Entry | None:
        return next((each for each in self.entries if each.name == APP), None)

    def seen(self) -> Member:
        there = self.entry
        return Member(
            name=self.name,
            selected=self.labelled,
            entry=there.target if there else None,
            admission=there.admission if there else 0,
            reported=self.reported,
            state=self.state,
            acknowledged=self.observed >= self.generation,
            listed=bool(self.state),
            reachable=not self.known_cut_off,
            adopted=True,
            mode=self.mode,
        )

    def take(self) -> None:
        """What the hub says arrives."""
        wanted = self.entry.target if self.entry else None
        if wanted != self.has:
            self.has, self.doing = wanted, "updating" if wanted is not None else ""
        self.taken = self.generation

    def tell(self) -> None:
        """What is so arrives at the hub."""
        self.observed, self.reported, self.state = self.taken, self.has or "", self.doing
        wanted = self.entry.target if self.entry else None
        arrived = self.reported == (wanted or "") and self.state in ("succeeded", "failed", "")
        if self.observed == self.generation and arrived:
            self.moving = self.excused = False


@dataclass(frozen=True, slots=True)
class Record:
    """What the Module's status has."""

    version: int = 0
    target: str = ""
    last_good: str = ""
    admission: int = 0
    admitted: tuple[Admitted, ...] = ()

    @property
    def names(self) -> dict[str, Admitted]:
        return {each.cluster: each for each in self.admitted}


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
    suspended: bool = False
    confirmed: str = ""
    record: Record = Record()
    records: deque[tuple[datetime, Record]] = field(default_factory=deque)
    """Those that were, and until when."""
    looks: deque[tuple[datetime, list[Member]]] = field(default_factory=deque)
    """The clusters as they were, and when."""
    undecided: list[tuple[Record, str, list[Member], Decision]] = field(default_factory=list)
    clusters: dict[str, SimCluster] = field(default_factory=dict)
    born: int = 0
    most: int = 1
    """The most that were ever allowed to be on their way."""
    last: Decision | None = None

    def __post_init__(self) -> None:
        for _ in range(self.size):
            self.add_cluster()

    # The hub

    def facts(self, record: Record, target: str) -> Facts:
        return Facts(
            target=target,
            previous=record.target,
            last_good=record.last_good,
            admission=record.admission,
            admitted=record.admitted,
            leaving=frozenset(each.cluster for each in record.admitted if each.leave),
            confirmed=self.confirmed,
            suspended=self.suspended,
        )

    def look(self) -> list[Member]:
        """The clusters as they are now; remembered, for those who look late."""
        named = self.record.names
        members = [c.seen() for c in self.clusters.values() if c.labelled or c.entry or c.state or c.name in named]
        self.looks.append((self.now, members))
        return members

    def recent(self, past: deque[tuple[datetime, Seen]]) -> list[Seen]:
        """What may still be taken for the present."""
        while past and past[0][0] < self.now - LATE:
            past.popleft()
        return [each for _, each in past]

    def think(self, *, stale: bool = True) -> None:
        """Someone reads the record and the clusters, these perhaps as they were before, and decides."""
        members = self.look()
        if stale:
            named = self.record.names.keys() & self.clusters.keys()
            known = [look for look in self.recent(self.looks) if named <= {member.name for member in look}]
            members = self.chance.choice(known)  # who has seen a cluster doesn't forget it
        record, target = self.record, self.target
        decision = decide(self.policy, self.facts(record, target), members, self.now)
        self.undecided.append((record, target, members, decision))

    def write(self) -> None:
        """Someone who has decided writes it down, unless the record is another by now."""
        if not self.undecided:
            return
        record, target, members, decision = self.undecided.pop(self.chance.randrange(len(self.undecided)))
        if record != self.record:
            return
        after = Record(record.version, target, decision.last_good, decision.admission, decision.admitted)
        self._check_decision(members, decision, record)
        if after != record:
            self._excuse(after)
            self.records.append((self.now, record))
            self.record = replace(after, version=record.version + 1)
            if any(
                each.leave and not names.leave for each in record.admitted if (names := after.names.get(each.cluster))
            ):
                self.looks.clear()  # what was seen of a cluster before it was to stay after all says nothing any more
                self.records.clear()
        self.last = decision

    def compile(self, cluster: SimCluster, *, stale: bool = True) -> None:
        """The assembler compiles one cluster, from the record that is there or one that was."""
        record = self.chance.choice([*self.recent(self.records), self.record]) if stale else self.record
        place = record.names.get(cluster.name) if cluster.mode == "Active" else None
        claim = Claim(
            module=APP,
            target=record.target,
            admission=record.admission,
            admitted=place is not None,
            restore=place is not None and place.restore,
            leave=place is not None and place.leave,
            reported=cluster.reported,
            selected=cluster.labelled,
            make=lambda target: entry(APP, target) if target in self.targets[-KEPT_REVISIONS:] else None,
        )
        before, entries = cluster.entry, assemble(cluster.entries, [claim])
        if entries == cluster.entries:
            return
        cluster.entries, cluster.generation = entries, cluster.generation + 1
        self._check_entry(cluster, before, place)
        after = cluster.entry
        if (after and after.target) != (before and before.target):
            # Who read the record before may still move one that was given up: its time was up, so it doesn't count.
            given_up = cluster.given_up is not None and cluster.given_up >= self.now - LATE
            late = (cluster.excused or given_up) and cluster.name not in self.record.names
            cluster.moving, cluster.excused = True, late or bool(place and place.restore)

    def restart(self) -> None:
        """The controller dies, and starts anew: what wasn't written is forgotten, all that was is read."""
        self.undecided.clear()
        self.looks.clear()
        self.records.clear()

    # The world

    def any_cluster(self) -> SimCluster:
        return self.clusters[self.chance.choice(list(self.clusters))]

    def add_cluster(self) -> None:
        name = f"c{self.born:04}"
        self.clusters[name] = SimCluster(name)
        self.born += 1

    def remove_cluster(self) -> None:
        if len(self.clusters) > 3:
            del self.clusters[self.any_cluster().name]

    def new_target(self) -> None:
        self.target = f"t1:{len(self.targets)}"
        self.targets.append(self.target)

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
            self.add_cluster,
            self.remove_cluster,
            self.restart,
            self.confirm,
            self.suspend,
            lambda: self.relabel(self.any_cluster()),
            lambda: self.relabel(self.any_cluster()),
            lambda: self.cut(self.any_cluster()),
            lambda: self.change_mode(self.any_cluster()),
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

    def _check_decision(self, members: list[Member], decision: Decision, record: Record) -> None:
        """What is admitted anew fits in, and may be left."""
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
            assert sum(not self.overdue(each) for each in decision.admitted) <= bound
            assert decision.admission > max((record.admission, *(m.admission for m in members)))
            assert not self.policy.paused
        leaving = [each for each in decision.admitted if each.leave]
        if any(each.cluster not in record.names or not record.names[each.cluster].leave for each in leaving):
            seen = {member.name: member for member in members}
            going = sum(not m.selected and (m.entry is not None or m.name in names) for m in members)
            few = going <= max(1, (summary.total + going) / 10)
            assert few or self.confirmed, f"{going} of {summary.total + going} leave, and nobody said they may"
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

    def _excuse(self, after: Record) -> None:
        """Those that lose their place before they have told must have had their time, or be nobody's concern now."""
        for name, place in self.record.names.items():
            cluster = self.clusters.get(name)
            if cluster is None:
                continue
            if not cluster.moving:
                cluster.given_up = self.now if name not in after.names and self.overdue(place) else None
                continue
            if name not in after.names:
                gone = place.leave and cluster.known_cut_off
                assert self.overdue(place) or place.restore or gone or not cluster.labelled, f"{name} lost its place"
                cluster.excused = True
            elif self.overdue(place):
                still = after.names[name]
                cluster.excused = cluster.excused or still.since == place.since or still.restore
