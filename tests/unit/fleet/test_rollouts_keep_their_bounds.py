"""Whatever happens around a rollout, it keeps its bounds, and in the end everyone is where they should be."""

import random

import msgspec
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from starling.api.v1alpha1 import LabelSelector, Rollout, RolloutGate, RolloutStage, RolloutWindow
from tests.rounds import ROUNDS
from tests.unit.fleet.checks import bound, part, stage_of
from tests.unit.fleet.simulated import SimCluster
from tests.unit.fleet.simulation import World

pytestmark = pytest.mark.rounds
# A failing seed says all that there is to say: making it smaller takes minutes, and tells nothing.
few = settings(max_examples=15 * ROUNDS, phases=(Phase.explicit, Phase.reuse, Phase.generate), deadline=None)

seeds = st.integers(0, 2**32)
sizes = st.one_of(st.integers(5, 30), st.integers(5, 80))
bounds = st.sampled_from([1, 2, 5, "10%", "25%", "100%"])


def stage(name: str, **labels: str) -> st.SearchStrategy[RolloutStage]:
    """A stage of the clusters with these labels."""
    return st.builds(
        RolloutStage,
        name=st.just(name),
        selector=st.just(LabelSelector(match_labels=labels)),
        max_concurrent=st.one_of(st.none(), bounds),
        bake=st.sampled_from(["0s", "1m", "10m"]),
        approval=st.sampled_from(["Automatic", "Automatic", "Manual"]),
        gate=st.sampled_from([None, None, RolloutGate(url="https://gate.test/")]),
    )


stages = st.one_of(
    st.just(()),
    st.tuples(stage("canary", ring="canary")),
    st.tuples(stage("canary", ring="canary"), stage("eu", region="eu")),
    st.tuples(stage("canary", ring="canary"), stage("eu", region="eu"), stage("us", region="us")),
)
windows = st.sampled_from(
    [
        (),
        (),
        (RolloutWindow(days=("Mon-Fri",), from_="09:00", until="16:00", timezone="Europe/Berlin"),),
        (RolloutWindow(from_="22:00", until="04:00", timezone="America/New_York"),),
    ]
)
policies = st.builds(
    Rollout,
    stages=stages,
    max_concurrent=bounds,
    max_failures=st.sampled_from([0, 1, "20%"]),
    on_failure=st.sampled_from(["Pause", "Rollback", "Continue"]),
    supersede=st.sampled_from(["Now", "Now", "Finish"]),
    unreachable=st.sampled_from(["Skip", "Skip", "Wait"]),
    timeout=st.sampled_from(["30s", "2m", "10m"]),
    jitter=st.sampled_from(["0s", "0s", "3m"]),
    windows=windows,
)
CANARY, EU, US = (
    LabelSelector(match_labels=labels) for labels in ({"ring": "canary"}, {"region": "eu"}, {"region": "us"})
)
WHATEVER_FAILS = Rollout(
    max_concurrent="100%",
    max_failures="20%",
    on_failure="Continue",
    windows=(RolloutWindow(from_="22:00", until="04:00", timezone="America/New_York"),),
)
"""A target ends before it is well."""

WITH_ONE_AWAY = Rollout(
    stages=(
        RolloutStage(name="canary", selector=CANARY, max_concurrent=2, bake="1m"),
        RolloutStage(name="eu", selector=EU, max_concurrent="10%", approval="Manual"),
    ),
    max_concurrent=5,
    max_failures="20%",
    unreachable="Wait",
    timeout="2m",
    jitter="3m",
)
"""A target is tried again while a canary is away."""

ALL_APPROVED = Rollout(
    stages=(
        RolloutStage(name="canary", selector=CANARY, approval="Manual"),
        RolloutStage(name="eu", selector=EU, bake="10m", approval="Manual", gate=RolloutGate(url="https://gate.test/")),
        RolloutStage(name="us", selector=US, approval="Manual"),
    ),
    max_concurrent=1,
    on_failure="Rollback",
    supersede="Finish",
    timeout="2m",
    windows=(RolloutWindow(days=("Mon-Fri",), from_="09:00", until="16:00", timezone="Europe/Berlin"),),
)
"""What someone goes back to is forgotten before that is written down."""

IN_HALF_A_MINUTE = Rollout(
    stages=(
        RolloutStage(name="canary", selector=CANARY, bake="1m"),
        RolloutStage(name="eu", selector=EU, bake="10m"),
        RolloutStage(name="us", selector=US, max_concurrent=2, bake="10m"),
    ),
    max_concurrent="25%",
    on_failure="Rollback",
    timeout="30s",
)
"""The entry of an admitted canary isn't written in time."""


def disturbed(world: World, steps: int) -> World:
    """The world after much has happened."""
    for _ in range(steps):
        world.step()
    return world


def put_in_order(world: World, *, confirmed: bool = True, retried: bool = True) -> None:
    """All are back, and people do what is theirs to do, and wait."""
    world.resume()
    for cluster in world.clusters.values():
        cluster.mode, cluster.cut_off = "Active", False
        cluster.adopt()
    attend(world, confirmed=confirmed, retried=retried)


def attend(world: World, *, confirmed: bool = True, retried: bool = True) -> None:
    """People say what they are asked for, until nothing happens any more."""
    for _ in range(40):
        world.settle()
        assert world.last is not None
        if world.last.confirm and confirmed:
            world.confirm()
        elif world.record.course.failed_target == world.record.target:
            if not retried:
                return
            world.people.retry(world.record.target)
        elif not let_on(world):
            return
    raise AssertionError(f"people are asked again and again: {world.last}")


def let_on(world: World) -> bool:
    """Open the gate of the stage whose turn it is, and approve it; whether anything was left to be said."""
    target, course = world.record.target, world.record.course
    stage = next((each for each in world.policy.stages if each.name == course.stage), None)
    if stage is None:
        return False
    pair = (target, stage.name)
    if stage.gate is not None and pair not in world.people.passed:
        world.people.passed.add(pair)
        return True
    if stage.approval == "Manual" and not course.approved(stage.name):
        world.people.approve(*pair)
        return True
    return False


def wanted(cluster: SimCluster, target: str) -> str | None:
    """What a cluster is to have in the end: what was found on one that isn't selected stays."""
    if cluster.labelled:
        return target
    return cluster.entry.target if cluster.entry is not None and not cluster.entry.admission else None


def all_are_at(world: World, target: str) -> None:
    """Assert that all clusters are where they should be, and nobody on its way."""
    for cluster in world.clusters.values():
        entry = cluster.entry.target if cluster.entry else None
        assert entry == wanted(cluster, target) == cluster.has, f"{cluster} {world.last}"
    assert not any(cluster.moving for cluster in world.clusters.values())
    assert not world.record.admitted


@few
@example(seed=463, size=5, policy=Rollout(max_concurrent=1, timeout="30s"))
@example(seed=5, size=5, policy=WHATEVER_FAILS)
@given(seed=seeds, size=sizes, policy=policies)
def test_all_end_at_the_newest_target(seed: int, size: int, policy: Rollout) -> None:
    """Once all disturbance is over, every cluster is at the newest target, or has none if it isn't selected."""
    world = disturbed(World(policy, size, random.Random(seed)), 150)
    put_in_order(world)
    assert world.last is not None
    assert world.last.phase in ("Succeeded", "Pending"), world.last
    all_are_at(world, world.target)
    assert world.record.course.last_good == world.target or world.last.summary.total == 0


@few
@example(seed=500, size=5, policy=WITH_ONE_AWAY, failing=0.05)
@example(seed=30718, size=5, policy=ALL_APPROVED, failing=0.05)
@example(seed=203045699, size=18, policy=IN_HALF_A_MINUTE, failing=0.05)
@given(seed=seeds, size=sizes, policy=policies, failing=st.sampled_from([0.05, 0.3, 1.0]))
def test_failures_stop_it(seed: int, size: int, policy: Rollout, failing: float) -> None:
    """With targets that fail here and there, all get there, or more have failed than may and no more move."""
    world = disturbed(World(policy, size, random.Random(seed), failing), 150)
    put_in_order(world, retried=False)
    assert world.last is not None
    failed = sum(c.labelled and c.doing == "failed" and c.has == world.target for c in world.clusters.values())
    there = all(c.has == wanted(c, world.target) for c in world.clusters.values())
    assert there or world.last.phase in ("Failed", "RolledBack", "Degraded"), world.last
    assert world.last.phase in ("Failed", "Degraded", "RolledBack") or not failed
    if world.last.phase == "RolledBack":
        all_are_at(world, world.record.course.rollback_to)


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_a_bad_target_touches_few(seed: int, size: int, policy: Rollout) -> None:
    """One that fails everywhere gets to as many as may fail and may be on their way, in no more than one stage."""
    policy = msgspec.structs.replace(
        policy, on_failure="Pause" if policy.on_failure == "Continue" else policy.on_failure
    )
    world = World(policy, size, random.Random(seed))
    put_in_order(world)
    good = world.target
    world.new_target()
    world.bad.add(world.target)
    for _ in range(40):
        world.step(calm=True)
    world.resume()
    attend(world, retried=False)
    sizes = [0] * (len(policy.stages) + 1)
    touched = [0] * (len(policy.stages) + 1)
    for cluster in world.clusters.values():
        sizes[stage_of(policy, cluster.labels)] += 1
        touched[stage_of(policy, cluster.labels)] += world.target in cluster.touched
    for number, (count, there) in enumerate(zip(touched, sizes, strict=True)):
        may_fail = part(policy.max_failures, there)
        assert count <= may_fail + bound(policy, number, there), f"{touched} of {sizes}"
        if there > may_fail:
            assert not any(touched[number + 1 :]), f"{touched} of {sizes}"
            break
    else:
        return  # as many as there are may fail
    assert world.last is not None
    assert world.last.phase == ("RolledBack" if policy.on_failure == "Rollback" else "Failed")
    if policy.on_failure == "Rollback":
        all_are_at(world, good)


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_people_can_go_back(seed: int, size: int, policy: Rollout) -> None:
    """An undone target is left by all for the one that people name, and they are there until there is a newer one."""
    world = World(policy, size, random.Random(seed))
    put_in_order(world)
    before = world.target
    world.new_target()
    for _ in range(60):
        world.step(calm=True)
    world.resume()
    if world.record.target == world.target:
        world.people.undo(world.target, before)
        attend(world, retried=False)
        all_are_at(world, before)
        assert world.last is not None
        assert world.last.phase == "RolledBack"
        world.new_target()
    put_in_order(world)
    all_are_at(world, world.target)


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_those_that_stay_away_hold_up_nobody(seed: int, size: int, policy: Rollout) -> None:
    """Clusters that never come back, or are cordoned, keep none of the others from the target."""
    policy = msgspec.structs.replace(policy, unreachable="Skip")
    world = disturbed(World(policy, size, random.Random(seed)), 100)
    world.resume()
    for cluster in world.clusters.values():
        cluster.adopt()
        if cluster.cut_off or world.chance.random() < 0.2:
            cluster.cut_off = True
        elif cluster.mode != "Active":
            cluster.mode = "Cordoned"
    attend(world, confirmed=False)
    for cluster in world.clusters.values():
        if cluster.labelled and not cluster.cut_off and cluster.mode == "Active":
            assert cluster.has == world.target, f"{cluster} {world.last}"


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_those_that_stay_away_can_be_waited_for(seed: int, size: int, policy: Rollout) -> None:
    """With Wait, nobody of a later stage moves until those of an earlier one are back."""
    policy = msgspec.structs.replace(policy, unreachable="Wait", on_failure="Pause")
    world = World(policy, size, random.Random(seed))
    put_in_order(world)
    away = world.chance.choice([cluster for cluster in world.clusters.values() if cluster.labelled])
    away.cut_off = True
    world.notice(away)
    world.new_target()
    attend(world)
    number = stage_of(policy, away.labels)
    for cluster in world.clusters.values():
        assert (cluster.has == world.target) == (cluster is not away and stage_of(policy, cluster.labels) <= number)
    put_in_order(world)
    all_are_at(world, world.target)


@settings(few, max_examples=ROUNDS)
@given(seed=seeds, policy=policies)
def test_thousands_are_as_few(seed: int, policy: Rollout) -> None:
    """What holds of a few clusters holds of thousands."""
    policy = msgspec.structs.replace(policy, max_concurrent="25%", windows=())
    world = disturbed(World(policy, 2000, random.Random(seed)), 30)
    put_in_order(world)
    all_are_at(world, world.target)


@few
@given(seed=seeds, size=sizes, leave=st.integers(1, 60))
def test_many_are_left_only_when_confirmed(seed: int, size: int, leave: int) -> None:
    """A selector that suddenly picks far fewer clusters takes nothing off any of them until someone says so."""
    world = World(Rollout(max_concurrent="100%"), size, random.Random(seed))
    put_in_order(world)
    world.new_target()
    world.think()
    world.write()  # all are admitted to move as they lose their label
    gone = world.chance.sample(list(world.clusters), k=min(leave, size))
    for name in gone:
        world.relabel(world.clusters[name])
    world.settle()
    few_enough = len(gone) <= max(1, size / 10)
    assert world.last is not None
    assert bool(world.last.confirm) != few_enough
    assert all((world.clusters[name].entry is None) == few_enough for name in gone)
    if not few_enough:
        assert world.last.phase == "Waiting"
        world.confirm()
        world.settle()
    assert all(world.clusters[name].has is None for name in gone)
    assert all(cluster.has == world.target for cluster in world.clusters.values() if cluster.labelled)
