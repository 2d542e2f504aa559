"""A hub, its clusters and a clock, in virtual time: all that may happen around `decide` and `assemble`, at random.

The hub is what survives: one Module's record, and for each cluster a ProxyAssemblage. Whoever decides or assembles may
have read these up to LATE seconds ago; a record is written only onto the one that was read. Clusters take their entry
in, tell, work and tell again, each after a while; they come and go, are cut off, relabelled, cordoned.

People give orders, at times for a target of before; gates open; windows close.

`check` is called after every step. What is truly on its way is counted here, from what was written and told, not from
what the code under test believes; `checks` judges each decision as it is recorded.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

import msgspec

from starling.api import seconds
from starling.api.v1alpha1 import Admitted, Entry, Rollout
from starling.fleet import Claim, Decision, Facts, Member, assemble, decide, superseded
from tests.unit.fleet.checks import Checks
from tests.unit.fleet.simulated import APP, FOREIGN, Look, Record, SimCluster, Thought, entry
from tests.unit.fleet.simulated_people import People

Seen = TypeVar("Seen")

LATE: Final = timedelta(minutes=5)
"""How old what someone acts on may be."""


@dataclass(slots=True)
class World:
    """Everything; `failing` is how likely a cluster fails at a target, `chance` where all that is random comes from.

    At `bad` targets every cluster fails. `target` is the newest: what the record has may have to be finished first.
    """

    policy: Rollout
    size: int
    chance: random.Random
    failing: float = 0.0
    bad: set[str] = field(default_factory=set)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    target: str = "t1:0"
    targets: list[str] = field(default_factory=lambda: ["t1:0"])
    forgotten: set[str] = field(default_factory=set)
    """Targets of which nobody knows any more what they stand for."""
    specs: int = 1
    """How often the Module's spec has changed."""
    suspended: bool = False
    confirmed: str = ""
    people: People = field(default_factory=People)
    checks: Checks = field(default_factory=Checks)
    record: Record = field(default_factory=Record)
    records: deque[tuple[datetime, Record]] = field(default_factory=deque)
    """Those that were, and until when."""
    looks: deque[tuple[datetime, Look]] = field(default_factory=deque)
    """All clusters as they were, and when."""
    undecided: list[Thought] = field(default_factory=list)
    clusters: dict[str, SimCluster] = field(default_factory=dict)
    born: int = 0
    last: Decision | None = None

    def __post_init__(self) -> None:
        for _ in range(self.size):
            self.add_cluster()

    # The hub

    def facts(self, members: list[Member]) -> Facts:
        record = self.record
        facts = Facts(
            target=record.target,
            previous=record.target,
            course=record.course,
            forgotten=frozenset(self.forgotten),
            admission=record.admission,
            admitted=record.admitted,
            confirmed=self.confirmed,
            salt=str(self.specs),
            suspended=self.suspended,
            asked=self.people.order,
        )
        return replace(facts, target=self.target) if superseded(self.policy, facts, members) else facts

    def look(self, *, stale: bool) -> Look:
        """The clusters that matter to the record, as they are now or were before."""
        there = self.clusters.values()
        look = Look([each.seen() for each in there], {each.name: each.arrived for each in there})
        self.looks.append((self.now, look))
        named = self.record.names
        if stale:  # who has seen a cluster doesn't forget that it is there
            known = named.keys() & self.clusters.keys()
            past = self.recent(self.looks)
            look = self.chance.choice([each for each in past if known <= {m.name for m in each.members}])
        members = [m for m in look.members if m.selected or m.entry is not None or m.listed or m.name in named]
        return Look(members, look.arrived)

    def recent(self, past: deque[tuple[datetime, Seen]]) -> list[Seen]:
        """What may still be taken for the present."""
        while past and past[0][0] < self.now - LATE:
            past.popleft()
        return [each for _, each in past]

    def think(self, *, stale: bool = True) -> None:
        """Someone reads the record and the clusters, these perhaps as they were before, and decides."""
        look = self.look(stale=stale)
        facts = self.facts(look.members)
        decision = decide(self.policy, facts, look.members, self.now)
        if (facts.target, decision.gate) in self.people.passed:
            facts = replace(facts, passed=facts.passed | {decision.gate})
            decision = decide(self.policy, facts, look.members, self.now)
        if self.chance.random() < 0.1:
            others = self.chance.sample(look.members, k=len(look.members))
            assert decide(self.policy, facts, others, self.now) == decision, "another answer to the same question"
        thought = Thought(self.policy, self.record, facts, look.members, look.arrived, decision, self.now)
        self.undecided.append(thought)

    def write(self) -> None:
        """Someone who has decided writes it down, unless the record is another by now."""
        if not self.undecided:
            return
        thought = self.undecided.pop(self.chance.randrange(len(self.undecided)))
        record, decision = thought.record, thought.decision
        if record != self.record:
            return
        after = Record(record.version, thought.facts.target, decision.course, decision.admission, decision.admitted)
        self.checks.decided(thought, self.people)
        if after != record:
            self._excuse(after, {member.name for member in thought.members if member.entry is None})
            self.checks.admitted(thought, self.clusters)
            self.records.append((self.now, record))
            self.record = replace(after, version=record.version + 1)
        self.last = decision

    def compile(self, cluster: SimCluster, *, stale: bool = True) -> None:
        """The assembler compiles one cluster, from the record that is there or one that was."""
        if not cluster.adopted or cluster.mode != "Active":
            return
        record = self.chance.choice([*self.recent(self.records), self.record]) if stale else self.record
        place = record.names.get(cluster.name)
        claim = Claim(
            module=APP,
            target=place.target if place is not None else record.target,
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
        cluster = SimCluster(f"c{self.born:04}", labels=self.some_labels())
        self.clusters[cluster.name] = cluster
        self.born += 1
        if self.chance.random() < 0.3:
            target = self.chance.choice([*self.targets, "t1:elsewhere"])
            cluster.adopted, cluster.imported = False, entry(APP, target, self.chance.choice((0, 50)))
            cluster.has, cluster.doing = target, "succeeded"

    def some_labels(self) -> dict[str, str]:
        ring = {"ring": "canary"} if self.chance.random() < 0.2 else {}
        return {"region": self.chance.choice(("eu", "us", "ap")), **ring}

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
        target, needed = self.chance.choice(self.targets), self.record.course.rollback_to
        if target not in (self.target, self.record.target, needed):
            self.forgotten.add(target)

    def finish(self, cluster: SimCluster) -> None:
        """What the cluster was at is done, one way or the other; what is done may need doing again for a while."""
        if cluster.doing == "updating":
            fails = cluster.has in self.bad or self.chance.random() < self.failing
            cluster.doing = "failed" if fails else "succeeded"
        elif cluster.doing == "succeeded" and self.chance.random() < 0.05:
            cluster.doing = "updating"

    def relabel(self, cluster: SimCluster) -> None:
        cluster.labelled = not cluster.labelled

    def move_house(self, cluster: SimCluster) -> None:
        """It is in another stage from now on, perhaps."""
        cluster.labels, cluster.shifted = self.some_labels(), True

    def cut(self, cluster: SimCluster) -> None:
        cluster.cut_off = not cluster.cut_off

    def notice(self, cluster: SimCluster) -> None:
        cluster.known_cut_off = cluster.cut_off

    def change_mode(self, cluster: SimCluster) -> None:
        cluster.mode = self.chance.choice(("Active", "Active", "Cordoned", "Frozen"))

    def confirm(self) -> None:
        if self.last is not None and self.last.confirm:
            self.confirmed = self.last.confirm

    def order(self) -> None:
        """Someone tells the rollout something, perhaps of a target that it is no longer about."""
        target = self.chance.choice((self.record.target, self.record.target, self.target, *self.targets[-2:]))
        stages = [stage.name for stage in self.policy.stages]
        verb = self.chance.random()
        if verb < 0.6 and stages:
            self.people.approve(target, self.chance.choice((self.record.course.stage, *stages)))
        elif verb < 0.9:
            self.people.retry(target)
        else:
            self.people.undo(target, self.chance.choice(self.targets[-3:]))

    def open_gate(self) -> None:
        if self.last is not None and self.last.gate:
            self.people.passed.add((self.record.target, self.last.gate))

    def let_time_pass(self) -> None:
        self.now += timedelta(hours=self.chance.choice((1, 5)))

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
            self.chance.choice((cluster.take, lambda: cluster.tell(self.now)))()

    def step(self, *, calm: bool = False) -> None:
        """Something happens; `calm`, nothing to clusters, and nobody wants anything new."""
        self.now += timedelta(seconds=self.chance.choice((0, 1, 1, 5, 20)))
        each: tuple[Callable[[SimCluster], None], ...] = (self.compile, self.exchange, self.exchange, self.finish)
        seldom = (self.pause, self.restart, self.suspend, self.open_gate, self.let_time_pass)
        self.chance.choice((self.think, self.write))()
        for act in each:
            for name in self.chance.sample(list(self.clusters), k=max(1, len(self.clusters) // 4)):
                act(self.clusters[name])
        for name in self.chance.sample(list(self.clusters), k=2):
            self.notice(self.clusters[name])
        if self.chance.random() < 0.3:
            self.chance.choice(seldom if calm else (*seldom, *self.disturbances))()
        self.check()

    @property
    def disturbances(self) -> tuple[Callable[[], None], ...]:
        """What people and clusters may do, those that do more to a rollout more often."""
        to_clusters = (self.relabel, self.relabel, self.move_house, self.cut, self.change_mode, SimCluster.adopt)
        return (
            *(self.new_target, self.revert, self.revert, self.forget),
            *(self.add_cluster, self.remove_cluster, self.confirm),
            *(self.order, self.order, self.order),
            *(partial(self._to_one, act) for act in to_clusters),
        )

    def _to_one(self, act: Callable[[SimCluster], None]) -> None:
        act(self.any_cluster())

    def settle(self) -> None:
        """Nothing new happens any more, until nothing changes; with windows, for longer than a weekend."""
        self.restart()
        since = self.now
        for _ in range(50 * len(self.clusters) + 300):
            before = (self.record, [cluster.condition for cluster in self.clusters.values()])
            self.turn()
            assert self.last is not None
            if before != (self.record, [cluster.condition for cluster in self.clusters.values()]):
                since = self.now
            elif self.last.recheck_after is None or self.now - since > timedelta(days=4):
                return
            else:
                self.now += timedelta(seconds=self.last.recheck_after)
            self.now += timedelta(seconds=1)
        raise AssertionError(f"it never comes to rest: {self.last}")

    def turn(self) -> None:
        """Everyone does what there is to do, having read all."""
        for cluster in self.clusters.values():
            self.notice(cluster)
        self.think(stale=False)
        self.write()
        for cluster in self.clusters.values():
            self.compile(cluster, stale=False)
            if not cluster.cut_off:
                cluster.take()
                cluster.tell(self.now)
            if cluster.doing == "updating":
                self.finish(cluster)
                if not cluster.cut_off:
                    cluster.tell(self.now)
        self.check()

    # What must hold

    def check(self) -> None:
        """No more on their way than may be, and each of these on record."""
        moving = {c.name for c in self.clusters.values() if c.moving and not c.excused}
        assert moving <= set(self.record.names), f"moving without a place: {moving - set(self.record.names)}"
        self.checks.moving(self.clusters.values())
        for cluster in self.clusters.values():
            assert FOREIGN in cluster.entries, f"{cluster.name} lost what nobody claims"

    def overdue(self, place: Admitted) -> bool:
        return self.now - place.since >= timedelta(seconds=seconds(self.policy.timeout))

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
