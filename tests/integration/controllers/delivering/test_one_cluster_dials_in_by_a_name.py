"""Two clusters that dial in as one: the first goes on, the other says so, delivers nothing, and waits."""

from typing import Any

import pytest

from starling.api import Cluster
from starling.api.enrolment import account_name
from starling.controllers.following import Troubles
from starling.controllers.heartbeat import Contested, Heartbeat, lease_of
from starling.kube import Client, Resource
from starling.runtime import Key
from tests.integration.controllers.delivering.world import World, entry
from tests.integration.engine.traffic import traffic
from tests.unit.test_workqueue import VirtualClock

CLUSTERS = Cluster.declaration.resource
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True)


def heartbeat(world: World, uid: str, clock: VirtualClock, *, hub: Client | None = None) -> Heartbeat:
    """The heartbeat of a cluster that has this uid and is called `c` on the hub."""

    async def known() -> str:
        return uid

    return Heartbeat(
        hub or world.hub,
        Key(world.namespace, "c"),
        identity="agent",
        uid=known,
        period=60.0,
        troubles=Troubles(lambda: None),
        clock=clock,
    )


async def holder(world: World) -> str:
    """Who has renewed the Lease last."""
    name: str = (await world.hub.get(lease_of(Key(world.namespace, "c")))).json()["spec"]["holderIdentity"]
    return name


async def test_the_first_stays_until_it_is_silent(world: World) -> None:
    """Another waits while the first is heard, takes its place after three silent periods, and then it is theirs."""
    await world.enrol()
    clock = VirtualClock()
    first, second = heartbeat(world, "one", clock), heartbeat(world, "two", clock)
    await first.beat()
    for _ in range(5):
        with pytest.raises(Contested, match="uid one"):
            await second.beat()
        await clock.advance(60)
        await first.beat()
    assert (first.contested, second.contested) == (False, True)
    with pytest.raises(Contested):
        await second.beat()
    await clock.advance(179)
    with pytest.raises(Contested):
        await second.beat()
    await clock.advance(1)
    await second.beat()
    assert (second.contested, await holder(world)) == (False, "agent_two")
    with pytest.raises(Contested, match="uid two"):
        await first.beat()
    assert await holder(world) == "agent_two"


async def test_a_cluster_remade_need_not_wait_for_the_dead(world: World) -> None:
    """A Lease that nobody has renewed for long is taken at once; who wakes up later finds it taken."""
    await world.enrol()
    clock = VirtualClock()
    first, second = heartbeat(world, "one", clock), heartbeat(world, "two", clock)
    await first.beat()
    await clock.advance(181)
    await second.beat()
    with pytest.raises(Contested):
        await first.beat()


async def test_whoever_else_writes_there_is_no_rival(world: World) -> None:
    """Enrolling again changes the Lease and stops nobody; nor does another process of the same cluster."""
    await world.enrol()
    clock = VirtualClock()
    one, other = heartbeat(world, "one", clock), heartbeat(world, "one", clock)
    await one.beat()
    await world.hub.merge_patch(lease_of(Key(world.namespace, "c")), {"metadata": {"annotations": {"by": "hand"}}})
    await one.beat()
    await other.beat()
    await one.beat()
    assert (one.contested, other.contested) == (False, False)


async def test_a_heartbeat_is_one_request(world: World) -> None:
    """It looks once, before the first; from then on only when someone else wrote."""
    await world.enrol()
    async with traffic(world.hub_cluster) as counted, Client(counted.access) as hub:
        beats = heartbeat(world, "one", VirtualClock(), hub=hub)
        for _ in range(4):
            await beats.beat()
        assert [each.verb for each in counted.asked] == ["get", "patch", "patch", "patch", "patch"]


async def test_an_agent_delivers_nothing_while_another_is_the_one(world: World) -> None:
    """The Upstream says why, the hub isn't told what this cluster is, nothing is made; then it goes on by itself."""
    await world.dial_in(await world.enrol())
    await world.propose(entry("base"))

    async def known() -> str:
        return "another"

    cluster = Key(world.namespace, "c")
    other = Heartbeat(world.hub, cluster, identity="agent", uid=known, period=1.0, troubles=Troubles(lambda: None))
    await other.beat()
    async with world.pulling(heartbeat=0.5):
        contested = await world.ready("Contested")
        (message,) = [each.message for each in contested.status.conditions if each.type == "Ready"]
        assert "uid another" in message
        await other.beat()
        assert await world.local() is None
        assert (await _cluster(world)).status.uid == ""
        await world.runs("base")
        await world.ready("Connected")


async def _cluster(world: World) -> Cluster:
    return (await world.hub.get(CLUSTERS.ref("c", world.namespace))).decode(Cluster)


async def test_what_runs_is_told_only_once_the_labels_are_known(world: World) -> None:
    """A hub that doesn't know yet which labels a cluster asks for can't adopt it: nothing would be selected for it."""
    await world.dial_in(await world.enrol(), zone="b")
    await world.propose(entry("base"))
    ref = ROLES.ref(account_name("c"), world.namespace)
    whole: list[dict[str, Any]] = (await world.hub.get(ref)).json()["rules"]
    mute = [{**each, "resources": [one for one in each["resources"] if one != "clusters/status"]} for each in whole]
    await world.hub.merge_patch(ref, {"rules": mute})
    async with world.pulling():
        await world.ready("Forbidden")
        await world.runs("base")
        await world.stands({"name": "base", "target": "t1:one", "state": "succeeded"})
        unknown = await world.proxy()
        assert unknown is not None
        await world.hub.merge_patch(ref, {"rules": whole})
        adopted = await world.adopt()
        assert (await _cluster(world)).status.requested_labels == {"zone": "b"}
        assert unknown.status.assemblage == ""
        assert adopted.spec.adopted
