"""Cluster: there when it is heard of, with the labels it may choose, and let go of in good order."""

from starling.api import Cluster, ProxyAssemblage
from starling.controllers.cluster import FINALIZER
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import NAMESPACES, Hub, condition


async def test_it_is_pending_until_it_is_heard_of(hub: Hub) -> None:
    """A first heartbeat makes it Ready; without one it says that it hasn't been heard of."""
    cluster = await Downstream.enrol(hub)
    async with hub.running():
        pending = await hub.says(Cluster, "c", "hasn't been heard of")
        assert pending.status.phase == "Pending"
        assert FINALIZER in pending.metadata.finalizers
        ready = await cluster.comes()
        assert condition(ready)[0] == "True"
        assert ready.status.last_seen is not None
        await cluster.goes()
        lost = await hub.says(Cluster, "c", "revoked")
        assert condition(lost)[:2] == ("False", "Unreachable")


async def test_heartbeats_cost_no_writes(hub: Hub) -> None:
    """Once it is Ready, further heartbeats leave the Cluster as it is."""
    cluster, other = await Downstream.enrol(hub), await Downstream.enrol(hub, "other")
    async with hub.running():
        ready = await cluster.comes()
        await other.comes()
        for _ in range(5):
            await cluster.beats()
        await other.goes()  # told by the same informer, so that the beats have been heard by now
        now = await hub.get(Cluster, "c")
        assert now is not None
        assert now.metadata.resource_version == ready.metadata.resource_version


async def test_it_gets_the_labels_that_it_may_choose(hub: Hub) -> None:
    """Of those it asks for, only those that the Cluster allows; its own word about itself stays in status."""
    cluster = await Downstream.enrol(hub, allowed=("zone", "size"))
    async with hub.running():
        await cluster.asks_for(zone="eu-1", ring="production")
        found = await hub.sees(Cluster, "c", lambda it: "zone" in it.metadata.labels)
        assert found.metadata.labels == {"ring": "canary", "zone": "eu-1"}
        await cluster.comes()
        await cluster.asks_for(zone="eu-2", admin="yes")
        found = await hub.sees(Cluster, "c", lambda it: it.metadata.labels.get("zone") == "eu-2")
        assert found.metadata.labels == {"ring": "canary", "zone": "eu-2"}
        assert (found.status.phase, found.status.kubernetes_version) == ("Ready", "v1.99.0")


async def test_a_label_that_no_label_can_be_is_left_out(hub: Hub) -> None:
    """What it asks for and the API server would refuse keeps neither the other labels nor its phase from it."""
    cluster = await Downstream.enrol(hub, allowed=("zone", "size"))
    async with hub.running():
        await cluster.asks_for(zone="no such, label!", size="big")
        found = await cluster.comes()
        assert found.metadata.labels == {"ring": "canary", "size": "big"}


async def test_one_that_is_deleted_is_released_first(hub: Hub) -> None:
    """Its proxy says released and keeps its entries; it goes once the cluster has told that nothing of ours is left."""
    hub.repository.head()
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.spec.syncs and it.status.syncs)
        await hub.delete(Cluster, "c")
        proxy = await hub.sees(ProxyAssemblage, "c", lambda it: it.spec.released)
        assert [each.name for each in proxy.spec.syncs] == ["base"]
        waiting = await hub.get(Cluster, "c")
        assert waiting is not None
        assert waiting.metadata.finalizers == (FINALIZER,)
        await cluster.delivers()
        await hub.gone(Cluster, "c")


async def test_one_that_is_deleted_and_not_there_goes_at_once(hub: Hub) -> None:
    """Nobody is waited for who can't answer."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.spec.syncs and it.status.syncs)
        await cluster.goes()
        await hub.delete(Cluster, "c")
        await hub.gone(Cluster, "c")


async def test_one_that_goes_while_it_is_let_go_is_not_waited_for(hub: Hub) -> None:
    """A cluster that was there when it was deleted, and then is lost, is let go of too."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.spec.syncs and it.status.syncs)
        await hub.delete(Cluster, "c")
        await hub.sees(ProxyAssemblage, "c", lambda it: it.spec.released)
        await hub.client.delete(cluster.lease)
        await hub.gone(Cluster, "c")


async def test_it_is_not_released_if_the_namespace_goes(hub: Hub) -> None:
    """A Cluster that goes because its namespace does is not let go of: it goes on by itself, as when a hub is lost."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.spec.syncs and it.status.syncs)
        await hub.client.delete(NAMESPACES.ref(hub.namespace))
        await hub.delete(Cluster, "c")
        await hub.gone(Cluster, "c")
        proxy = await cluster.proxy()
        assert proxy is not None
        assert not proxy.spec.released
        assert [each.name for each in proxy.spec.syncs] == ["base"]
