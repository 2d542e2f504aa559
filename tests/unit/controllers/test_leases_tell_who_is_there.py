"""Clusters that dial in are there as long as their Leases change, by this process's own clock and connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec
import pytest

from starling.controllers.heartbeat import LEASES
from starling.controllers.presence import CLUSTER_LABEL, ClusterLease, LeaseWatch, Presence
from starling.kube import Client, Interrupted, Resumed, Unreachable, default_access
from starling.runtime import Informer, Key
from tests.unit.test_workqueue import VirtualClock

EDGE = Key("fleet", "edge-7")
Beat = Callable[..., None]


@pytest.fixture
def clock() -> VirtualClock:
    """Time that passes when told to."""
    return VirtualClock()


@pytest.fixture
def leases() -> Informer[ClusterLease]:
    """An informer that is told by the test instead of a server."""
    return Informer(Client(default_access()), LEASES, ClusterLease)


@pytest.fixture
async def presence(leases: Informer[ClusterLease], clock: VirtualClock) -> AsyncIterator[Presence]:
    """What a LeaseWatch tells."""
    presence = Presence()
    watch = LeaseWatch(presence, clock=clock)
    watch.listen(leases)
    task = asyncio.create_task(watch.run(leases))
    await clock.advance(0)
    yield presence
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.fixture
def beat(leases: Informer[ClusterLease]) -> Beat:
    """Has a cluster's Lease be told in a new state."""
    versions = iter(range(1, 1000))

    def told(
        name: str = "edge-7", *, renewed: str | None = None, every: int = 60, label: str = "", uid: str = ""
    ) -> None:
        version = next(versions)
        lease = {
            "metadata": {
                "name": f"starling-cluster-{name}",
                "namespace": "fleet",
                "uid": uid or name,
                "resourceVersion": str(version),
                "labels": {CLUSTER_LABEL: label or name},
            },
            "spec": {"renewTime": renewed if renewed is not None else f"at {version}", "leaseDurationSeconds": every},
        }
        if renewed == "":
            del lease["spec"]
        leases.learn(convert(lease))

    return told


def convert(lease: object) -> ClusterLease:
    """As it would be decoded."""
    return msgspec.convert(lease, ClusterLease)


def reachable(presence: Presence, key: Key = EDGE) -> bool | None:
    """What is known of a cluster."""
    seen = presence.get(key)
    return seen.reachable if seen is not None else None


async def test_the_first_sight_says_nothing(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """A process that has just started knows neither that a cluster is there nor that it isn't."""
    beat()
    await clock.advance(170)
    assert reachable(presence) is None


async def test_a_change_means_that_it_is_there(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """Who renews is there, and for three periods after."""
    beat()
    beat()
    assert reachable(presence) is True
    await clock.advance(175)
    assert reachable(presence) is True
    beat()
    await clock.advance(175)
    assert reachable(presence) is True


async def test_three_misses_mean_lost(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """Who hasn't renewed for three periods is lost, also if we never saw it renew, and back when it does."""
    beat("edge-1")
    beat()
    beat()
    await clock.advance(190)
    assert reachable(presence) is False
    assert reachable(presence, Key("fleet", "edge-1")) is False
    beat()
    assert reachable(presence) is True


async def test_the_period_is_the_leases_own(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """A cluster that beats every ten seconds is lost after thirty."""
    beat(every=10)
    beat(every=10)
    await clock.advance(25)
    assert reachable(presence) is True
    await clock.advance(15)
    assert reachable(presence) is False


async def test_a_lease_never_renewed_says_nothing(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """An enrolled cluster whose agent has never called is not lost: nobody has heard of it yet."""
    beat(renewed="")
    await clock.advance(1000)
    assert reachable(presence) is None


async def test_other_changes_to_a_lease_are_no_heartbeat(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """A label set on a Lease isn't a sign of life."""
    beat(renewed="then")
    beat(renewed="then")
    assert reachable(presence) is None
    await clock.advance(190)
    assert reachable(presence) is False


async def test_no_cluster_speaks_for_another(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """A Lease is of the cluster in its name, which nobody can change; labelled as another's it says nothing."""
    for _ in range(3):
        beat("edge-1", label="edge-7")
    assert reachable(presence) is None
    assert reachable(presence, Key("fleet", "edge-1")) is None
    await clock.advance(190)
    assert reachable(presence) is None


async def test_a_cluster_made_anew_begins_anew(presence: Presence, beat: Beat, clock: VirtualClock) -> None:
    """The Lease goes after its Cluster: that is nothing to tell of the next cluster of this name."""
    beat()
    beat()
    presence.forget(EDGE)
    beat(renewed="", uid="made anew")
    assert presence.get(EDGE) is None
    await clock.advance(190)
    assert presence.get(EDGE) is None


async def test_a_revoked_cluster_is_lost(presence: Presence, beat: Beat) -> None:
    """Where the Cluster stays and its Lease goes, it can't be there any more."""
    beat()
    beat(renewed="", uid="made anew")
    assert reachable(presence) is False


async def test_time_without_a_connection_does_not_count(
    presence: Presence, leases: Informer[ClusterLease], beat: Beat, clock: VirtualClock
) -> None:
    """A hub that was away for hours takes nobody for dead when it is back."""
    beat()
    beat()
    await clock.advance(60)
    leases._hear(Interrupted(Unreachable("watch Lease", "connection refused")))
    await clock.advance(10_000)
    assert reachable(presence) is True
    leases._hear(Resumed())
    await clock.advance(175)
    assert reachable(presence) is True, "it has its three periods anew: it may have lost us, too"
    await clock.advance(20)
    assert reachable(presence) is False
