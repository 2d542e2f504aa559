"""Two who take a cluster for theirs don't undo each other's work, and a hub that forgot undoes nothing."""

import msgspec

from starling.api import Assemblage, Cluster, ProxyAssemblage
from starling.controllers.presence import Presence
from starling.fleet.delivery import adopt, origin_of
from starling.kube import Client
from starling.runtime import Key
from tests.integration.controllers.delivering.world import World, entry, found
from tests.integration.engine.traffic import traffic
from tests.waiting import until

ASSEMBLAGES = Assemblage.declaration.resource


def why(presence: Presence, world: World, cluster: str = "c") -> str:
    """Why a cluster is lost."""
    seen = presence.get(Key(world.namespace, cluster))
    return seen.why if seen is not None else ""


async def owner(world: World) -> str:
    """Whose the Assemblage is: a proxy's uid."""
    local = await world.local()
    origin = origin_of(local) if local is not None else None
    return origin.uid if origin is not None else ""


async def settled(world: World) -> Assemblage:
    """The Assemblage of a cluster whose hub has adopted it and delivered since."""
    await world.adopt()
    await world.follows()
    await world.stands()
    await world.reported()
    local = await world.local()
    assert local is not None
    return local


async def test_the_first_of_two_names_stays_and_the_second_is_told(world: World) -> None:
    """One cluster added twice runs what it ran; the second Cluster says as what else it is there, and the way out."""
    await world.add_push()
    first = await world.propose(entry("base"))
    async with world.pushing() as presence:
        await world.runs("base")
        before = await settled(world)
        await world.add_push("twice")
        await world.propose(entry("other"), cluster="twice")
        await until(lambda: "is also delivered to as" in why(presence, world, "twice"))
        assert first.metadata.uid in why(presence, world, "twice")
        assert "starling.dev/proxy-" in why(presence, world, "twice")
        await world.propose(entry("base"), entry("mesh"), adopted=before.metadata.uid)
        await world.runs("base", "mesh")
        second = await world.proxy("twice")
        assert second is not None
        assert second.status.assemblage == ""
        assert why(presence, world) == ""


async def test_the_second_has_it_once_the_first_lets_go(world: World) -> None:
    """When the first Cluster is let go, the other one goes on by itself."""
    await world.add_push()
    await world.propose(entry("base"))
    async with world.pushing() as presence:
        await world.runs("base")
        before = await settled(world)
        await world.add_push("twice")
        second = await world.propose(entry("other"), cluster="twice")
        await until(lambda: bool(why(presence, world, "twice")))
        await world.propose(adopted=before.metadata.uid, released=True)
        await world.follows()
        await world.stands()
        await world.reported()
        await world.hub.delete(Cluster.declaration.resource.ref("c", world.namespace))
        await until(lambda: _is(world, second.metadata.uid))
        await until(lambda: why(presence, world, "twice") == "")


async def _is(world: World, uid: str) -> bool:
    return await owner(world) == uid


async def test_letting_go_of_what_is_anothers_needs_nobody(world: World) -> None:
    """The second Cluster goes without a trace: that is acknowledged, and nothing is touched."""
    await world.add_push()
    await world.propose(entry("base"))
    async with world.pushing() as presence:
        await world.runs("base")
        before = await settled(world)
        await world.add_push("twice")
        await world.propose(entry("other"), cluster="twice")
        await until(lambda: bool(why(presence, world, "twice")))
        await world.propose(cluster="twice", released=True)

        async def acknowledged() -> bool:
            proxy = await world.proxy("twice")
            return proxy is not None and proxy.status.observed == proxy.metadata.generation

        await until(acknowledged)
        after = await world.local()
        assert after is not None
        assert after.metadata.generation == before.metadata.generation


def second_hub(world: World) -> World:
    """Another hub that knows the same cluster by the same name: the cluster's own server plays it."""
    there, itself = world.downstream, world.downstream_cluster
    return World(there, there, world.namespace, itself, itself)


async def test_of_two_hubs_the_later_has_it_and_the_earlier_stops(world: World) -> None:
    """A hub that finds the cluster takes it over, nothing removed; the one before stops, says so, and doesn't fight."""
    await world.add_push()
    await world.propose(entry("base"))
    other = second_hub(world)
    async with world.pushing() as presence:
        await world.runs("base")
        before = await settled(world)
        await other.add_push()
        proxy = await other.propose(entry("mesh"))
        async with other.pushing() as others:
            local = await other.runs("base", "mesh")
            assert local.metadata.uid == before.metadata.uid
            await other.adopt()
            await other.follows()
            await until(lambda: "is also delivered to as" in why(presence, world))
            assert proxy.metadata.uid in why(presence, world)
            assert "delete proxyassemblage c" in why(presence, world)
            await world.propose(entry("base", "t1:two"), adopted=before.metadata.uid)
            await other.propose(entry("base"), entry("mesh", "t1:two"), adopted=before.metadata.uid)
            await other.follows()
            await other.stands()
            await other.reported()
            assert await owner(world) == proxy.metadata.uid
            assert why(others, other) == ""
            after = await other.local()
            assert after is not None
            assert {each.name: each.target for each in after.spec.syncs} == {"base": "t1:one", "mesh": "t1:two"}


async def restore(world: World, local: Assemblage) -> None:
    """Have the Assemblage as if the hub had come further than it has: it was put back to where it is."""
    newer = [entry("base", "t1:new"), entry("since")]
    ref = ASSEMBLAGES.ref("fleet", world.namespace)
    generation = {"starling.dev/proxy-generation": "1000"}
    spec = {**msgspec.to_builtins(local.spec), "syncs": newer}
    await world.downstream.merge_patch(ref, {"metadata": {"annotations": generation}, "spec": spec})


async def test_a_hub_restored_from_a_backup_goes_on_from_what_runs(world: World) -> None:
    """What it made since isn't undone: it is told again, adopted as it is, and from then on the hub's word counts."""
    await world.add_push()
    await world.propose(entry("base", "t1:old"), entry("removed"))
    async with world.pushing():
        await world.runs("base", "removed")
        local = await settled(world)
    await restore(world, local)
    async with world.pushing() as presence:

        async def told() -> ProxyAssemblage | None:
            proxy = await world.proxy()
            return proxy if proxy is not None and proxy.status.imported else None

        proxy = await found(told)
        assert {each.name: each.target for each in proxy.status.imported} == {"base": "t1:new", "since": "t1:one"}
        assert proxy.status.assemblage != proxy.spec.adopted
        again = adopt(proxy.spec, proxy.status)
        await world.propose(*msgspec.to_builtins(again.syncs), adopted=again.adopted)
        await world.follows()
        await world.stands()
        assert (await world.reported()).status.imported == ()
        await world.propose(entry("base", "t1:newer"), adopted=again.adopted)
        after = await found(lambda: _runs_newer(world))
        assert (after.spec.syncs[0].target, after.metadata.uid) == ("t1:newer", local.metadata.uid)
        assert why(presence, world) == ""


async def _runs_newer(world: World) -> Assemblage | None:
    local = await world.local()
    return local if local is not None and [each.target for each in local.spec.syncs] == ["t1:newer"] else None


async def test_a_leader_that_slept_reads_again_before_it_takes_the_hub_for_restored(world: World) -> None:
    """Who only knows an old state of the proxy asks for the newest, and finds that nothing went back."""
    await world.add_push()
    await world.propose(entry("base"))
    async with traffic(world.hub_cluster) as hub, Client(hub.access) as client:
        sleepy = World(client, world.downstream, world.namespace, world.hub_cluster, world.downstream_cluster)
        async with sleepy.pushing():
            await world.runs("base")
            local = await settled(world)
            hub.events.clear()
            newest = await world.propose(entry("base", "t1:two"), entry("mesh"), adopted=local.metadata.uid)
            generation = {"starling.dev/proxy-generation": str(newest.metadata.generation)}
            ref = ASSEMBLAGES.ref("fleet", world.namespace)
            await world.downstream.merge_patch(ref, {"metadata": {"annotations": generation}})
            await world.runs("base", "mesh")
            await world.stands()
            assert (await world.reported()).status.assemblage == local.metadata.uid
            hub.events.set()


async def test_an_assemblage_that_nobody_has_claimed_is_imported(world: World) -> None:
    """One without a record is found, recorded as ours, and told."""
    body = {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Assemblage",
        "metadata": {"name": "fleet", "namespace": world.namespace},
        "spec": {"instance": "fleet", "syncs": [entry("old")]},
    }
    await world.downstream.create(ASSEMBLAGES, body, namespace=world.namespace)
    await world.add_push()
    proxy = await world.propose()
    async with world.pushing():
        await world.adopt()
        assert await owner(world) == proxy.metadata.uid
        await world.follows()
        await world.runs("old")
