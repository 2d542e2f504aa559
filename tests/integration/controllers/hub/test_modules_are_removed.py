"""Module deleted: it leaves the clusters, and isn't gone before those that are there have said so."""

from datetime import UTC, datetime

from starling.api import Cluster, Module, ProxyAssemblage
from starling.controllers.module import FINALIZER
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import NAMESPACES, Hub


async def rolled_out(hub: Hub, *names: str) -> list[Downstream]:
    """Clusters that run the Module `base`, and have said so."""
    await hub.put_source()
    await hub.put_module(rollout={"maxConcurrent": "100%"})
    found = [await Downstream.ready(hub, name) for name in names]
    for each in found:
        await each.delivers_until(lambda it: it.status.syncs)
    await hub.sees(Module, "base", lambda it: it.status.summary.succeeded == len(names))
    return found


async def test_its_entries_leave_and_it_waits_for_the_word_of_those_there(hub: Hub) -> None:
    """Entries go at once; the finalizer goes when the cluster says that it no longer has it."""
    async with hub.running():
        (cluster,) = await rolled_out(hub, "c")
        await hub.delete(Module, "base")
        await hub.says(Module, "base", "being removed from 1 clusters")
        await hub.sees_entries_of("c", [])
        await hub.put_module("other")
        proxy = await hub.sees_entries_of("c", ["other"])  # by then, that the first has left is known
        assert [each.name for each in proxy.status.syncs] == ["base"]
        module = await hub.get(Module, "base")
        assert module is not None
        assert module.metadata.finalizers == (FINALIZER,)
        await cluster.delivers()
        await hub.gone(Module, "base")


async def test_those_that_cannot_be_reached_are_not_waited_for(hub: Hub) -> None:
    """A lost cluster's entry leaves too, and the Module is gone without its word."""
    async with hub.running():
        there, lost = await rolled_out(hub, "there", "lost")
        await lost.goes()
        await hub.delete(Module, "base")
        await hub.sees_entries_of("lost", [])
        await hub.sees_entries_of("there", [])
        assert await hub.get(Module, "base") is not None
        await there.delivers()
        await hub.gone(Module, "base")
        proxy = await lost.proxy()
        assert proxy is not None
        assert [each.name for each in proxy.status.syncs] == ["base"]


async def test_objects_stay_if_it_says_so_when_it_is_deleted(hub: Hub) -> None:
    """Also if that hasn't been rolled out: clusters hear of it first. Who is away keeps the entry, nobody's by then."""
    async with hub.running():
        there, lost = await rolled_out(hub, "there", "lost")
        await lost.goes()
        await hub.put_module(sync={"deletionPolicy": "Orphan"}, rollout={"paused": True})
        await hub.sees(Module, "base", lambda it: it.status.observed_generation == it.metadata.generation)
        await hub.delete(Module, "base")
        for name in ("there", "lost"):
            told = await hub.sees(
                ProxyAssemblage, name, lambda it: [each.deletion_policy for each in it.spec.syncs] == ["Orphan"]
            )
            assert told.status.observed < told.metadata.generation
        await there.delivers_until(lambda it: not it.spec.syncs)
        await there.delivers()
        await hub.gone(Module, "base")
        proxy = await lost.proxy()
        assert proxy is not None
        assert [(each.name, each.deletion_policy) for each in proxy.spec.syncs] == [("base", "Orphan")]


async def test_its_clusters_keep_it_if_the_namespace_goes(hub: Hub) -> None:
    """A Module that goes because its namespace does leaves entries where they are."""
    async with hub.running():
        (cluster,) = await rolled_out(hub, "c")
        await hub.client.delete(NAMESPACES.ref(hub.namespace))
        namespace = (await hub.client.get(NAMESPACES.ref(hub.namespace))).json()["metadata"]
        assert datetime.fromisoformat(namespace["deletionTimestamp"]) <= datetime.now(UTC)
        await hub.delete(Module, "base")
        await hub.gone(Module, "base")
        assert (await cluster.entries()).keys() == {"base"}
        # Whatever is compiled next leaves it alone, too.
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"ring": "other"}}})
        await hub.patch(Cluster, "c", {"spec": {"mode": "Cordoned"}})
        await cluster.delivers_until(lambda it: it.spec.mode == "Cordoned")
        assert (await cluster.entries()).keys() == {"base"}
