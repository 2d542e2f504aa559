"""Whatever happens around a rollout, it keeps its bounds, and in the end everyone is where they should be."""

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from starling.api.v1alpha1 import Rollout
from starling.fleet.standing import share
from tests.rounds import ROUNDS
from tests.unit.fleet.simulated import SimCluster
from tests.unit.fleet.simulation import World

pytestmark = pytest.mark.rounds
# A failing seed says all that there is to say: making it smaller takes minutes, and tells nothing.
few = settings(max_examples=15 * ROUNDS, phases=(Phase.explicit, Phase.reuse, Phase.generate))

seeds = st.integers(0, 2**32)
sizes = st.one_of(st.integers(5, 30), st.integers(5, 200))
policies = st.builds(
    Rollout,
    max_concurrent=st.sampled_from([1, 2, 5, "10%", "25%", "100%"]),
    max_failures=st.sampled_from([0, 1, "20%"]),
    timeout=st.sampled_from(["30s", "2m", "10m"]),
)


def disturbed(world: World, steps: int) -> World:
    """The world after much has happened."""
    for _ in range(steps):
        world.step()
    return world


def put_in_order(world: World, *, confirmed: bool = True) -> None:
    """People do what is theirs to do, and wait."""
    world.resume()
    for cluster in world.clusters.values():
        cluster.mode, cluster.cut_off = "Active", False
        cluster.adopt()
    world.settle()
    while confirmed and world.last is not None and world.last.confirm:
        world.confirm()
        world.settle()


def wanted(world: World, cluster: SimCluster) -> str | None:
    """What a cluster is to have in the end: what was found on one that isn't selected stays."""
    if cluster.labelled:
        return world.target
    return cluster.entry.target if cluster.entry is not None and not cluster.entry.admission else None


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_all_end_at_the_newest_target(seed: int, size: int, policy: Rollout) -> None:
    """Once all disturbance is over, every cluster is at the newest target, or has none if it isn't selected."""
    world = disturbed(World(policy, size, random.Random(seed)), 150)
    put_in_order(world)
    assert world.last is not None
    assert world.last.phase in ("Succeeded", "Pending"), world.last
    for cluster in world.clusters.values():
        assert (cluster.entry.target if cluster.entry else None) == wanted(world, cluster) == cluster.has
    assert not any(cluster.moving for cluster in world.clusters.values())
    assert not world.record.admitted
    assert world.record.last_good == world.target or world.last.summary.total == 0


@few
@given(seed=seeds, size=sizes, policy=policies, failing=st.sampled_from([0.05, 0.3, 1.0]))
def test_failures_stop_it(seed: int, size: int, policy: Rollout, failing: float) -> None:
    """With targets that fail here and there, all get there, or more have failed than may and no more move."""
    world = disturbed(World(policy, size, random.Random(seed), failing), 150)
    put_in_order(world)
    assert world.last is not None
    failed = sum(c.labelled and c.doing == "failed" and c.has == world.target for c in world.clusters.values())
    selected = sum(c.labelled for c in world.clusters.values())
    there = all(c.has == wanted(world, c) for c in world.clusters.values())
    stopped = failed > share(policy.max_failures, selected)
    assert there or stopped
    assert (world.last.phase == "Degraded") == (failed > 0)


@few
@given(seed=seeds, size=sizes, policy=policies)
def test_those_that_stay_away_hold_up_nobody(seed: int, size: int, policy: Rollout) -> None:
    """Clusters that never come back, or are cordoned, keep none of the others from the target."""
    world = disturbed(World(policy, size, random.Random(seed)), 100)
    world.resume()
    for cluster in world.clusters.values():
        if cluster.cut_off or world.chance.random() < 0.2:
            cluster.cut_off = True
        elif cluster.mode != "Active":
            cluster.mode = "Cordoned"
    world.settle()
    for cluster in world.clusters.values():
        if cluster.labelled and cluster.adopted and not cluster.cut_off and cluster.mode == "Active":
            assert cluster.has == world.target


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
