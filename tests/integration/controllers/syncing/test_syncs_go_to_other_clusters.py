"""Syncs on a hub that name a Cluster: applied there, kept so there, and one that is away holds up no other."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from starling.engine import Engine
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.controllers.syncing.elsewhere import Elsewhere
from tests.integration.controllers.syncing.stage import ACCOUNTS, config_map
from tests.integration.controllers.syncing.test_syncs_have_a_life_of_their_own import put_source
from tests.integration.relay import Relay
from tests.waiting import until


@contextmanager
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def vandalise(place: Elsewhere, name: str) -> None:
    """Change a ConfigMap on the other cluster, as someone there does."""
    ref = CONFIG_MAPS.ref(name, place.there.namespace)
    await place.there.client.merge_patch(ref, {"data": {"v": "x"}}, manager="vandal")


async def test_objects_arrive_and_stay(elsewhere: Elsewhere) -> None:
    """What a Sync has is applied on its cluster and put right there; one without a cluster is the hub's own."""
    hub, there = elsewhere.hub, elsewhere.there
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1"), "own/cm.yaml": config_map("own", v="1")})
    second = hub.repository.commit({"web/cm.yaml": config_map("web", v="2")})
    await elsewhere.add("eu-1")
    async with hub.agent():
        await elsewhere.put_sync("web", first)
        await hub.put_sync("own", first)
        sync = await hub.ready("web")
        await hub.ready("own")
        live = await there.live("web")
        assert live is not None
        tracked = f"local/{hub.namespace}/Sync.web@eu-1:/ConfigMap:{hub.namespace}/web"
        assert live["metadata"]["annotations"]["starling.dev/tracking-id"] == tracked
        assert [line.split()[0] for line in sync.status.inventory] == [f"/ConfigMap/{hub.namespace}/web"]
        assert await hub.live("own") is not None
        assert await hub.live("web") is None
        assert await there.live("own") is None
        await vandalise(elsewhere, "web")
        await there.has("web", {"v": "1"})
        await elsewhere.put_sync("web", second, suspend=True)
        await hub.says("web", "suspended")
        assert (await there.live("web") or {})["data"] == {"v": "1"}
        await elsewhere.put_sync("web", second)
        await there.has("web", {"v": "2"})


async def test_a_sync_follows_its_cluster_s_labels(elsewhere: Elsewhere) -> None:
    """Bindings are what they are for each cluster, and another label is another value."""
    hub, there = elsewhere.hub, elsewhere.there
    content = config_map("${CLUSTER_NAME}", region="${REGION}")
    first = hub.repository.commit({"a/cm.yaml": content, "b/cm.yaml": content})
    region = [{"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}]
    await elsewhere.add("eu-1", labels={"region": "eu"})
    await elsewhere.add("us-1")
    async with hub.agent():
        await elsewhere.put_sync("a", first, bindings=region)
        await elsewhere.put_sync("b", first, cluster="us-1", bindings=region)
        await there.has("eu-1", {"region": "eu"})
        await hub.says("b", "Cluster us-1 has no field /metadata/labels/region", "Stalled")
        await elsewhere.put_cluster("us-1", labels={"region": "us"})
        await there.has("us-1", {"region": "us"})
        await elsewhere.put_cluster("eu-1", labels={"region": "north"})
        await there.has("eu-1", {"region": "north"})


async def test_an_account_of_the_other_cluster_acts(elsewhere: Elsewhere) -> None:
    """It must be there, not on the hub, and its rights there are the limit."""
    hub, there = elsewhere.hub, elsewhere.there
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    await elsewhere.add("eu-1")
    await hub.make_account("deployer")
    async with hub.agent():
        await elsewhere.put_sync("web", first, serviceAccountName="deployer")
        name = f"{hub.namespace}/deployer"
        await hub.says("web", f"no ServiceAccount {name} on Cluster {elsewhere.place()}", "Stalled")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}}
        await there.client.apply(ACCOUNTS.ref("deployer", there.namespace), account)
        sync = await hub.says("web", f"system:serviceaccount:{hub.namespace}:deployer", "Stalled")
        assert sync.status.problems[0].reason == "Forbidden"
        assert await there.live("web") is None
        await there.make_account("deployer")
        await hub.ready("web")


async def test_a_cluster_that_is_not_there_yet(elsewhere: Elsewhere) -> None:
    """A Sync says what is missing, goes on when it is there, and follows a kubeconfig that is replaced."""
    hub, there = elsewhere.hub, elsewhere.there
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    async with hub.agent() as engine, Relay(elsewhere.port) as old:
        await elsewhere.put_sync("web", first)
        sync = await hub.says("web", f"there is no Cluster {elsewhere.place()}")
        assert (sync.status.readiness, sync.metadata.finalizers) == ("Unknown", ())
        await elsewhere.put_cluster("eu-1")
        await hub.says("web", f"there is no Secret {hub.namespace}/eu-1-kubeconfig")
        await elsewhere.put_kubeconfig("eu-1", old.port)
        await hub.ready("web")
        old.cut()
        sync = await hub.says("web", f"Cluster {elsewhere.place()}: ")
        assert sync.status.readiness == "Unknown"
        before = engine.client(elsewhere.place())
        await elsewhere.put_kubeconfig("eu-1")
        await hub.ready("web")
        assert engine.client(elsewhere.place()) is not before
        await vandalise(elsewhere, "web")
        await there.has("web", {"v": "1"})


async def test_a_pull_cluster_is_not_for_direct_syncs(elsewhere: Elsewhere) -> None:
    """What dials in is out of reach, and the Sync says so."""
    first = elsewhere.hub.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    await elsewhere.put_cluster("edge", pull={})
    async with elsewhere.hub.agent():
        await elsewhere.put_sync("web", first, cluster="edge")
        await elsewhere.hub.says("web", f"Cluster {elsewhere.place('edge')} dials in")


async def test_clusters_that_are_away_hold_up_none(elsewhere: Elsewhere) -> None:
    """With one dead and one that never says a word, others go on; what comes back catches up."""
    hub, there = elsewhere.hub, elsewhere.there
    names = ("web", "far", *(f"s{at}" for at in range(12)))
    first = hub.repository.commit({f"{name}/cm.yaml": config_map(name, v="1") for name in names})
    second = hub.repository.commit({f"{name}/cm.yaml": config_map(name, v="2") for name in names})
    with silent() as port:
        async with hub.agent(), Relay(elsewhere.port) as relay:
            await elsewhere.add("eu-1")
            await elsewhere.add("away", relay.port)
            await elsewhere.add("silent", port)
            await elsewhere.put_sync("far", first, cluster="away")
            await hub.ready("far")
            relay.cut()
            for name in names[2:]:
                await elsewhere.put_sync(name, first, cluster="silent")
            assert (await hub.says("far", f"Cluster {elsewhere.place('away')}: ")).status.readiness == "Unknown"
            await elsewhere.put_sync("far", second, cluster="away")
            await elsewhere.put_sync("web", first)
            await there.has("web", {"v": "1"})
            await vandalise(elsewhere, "web")
            await there.has("web", {"v": "1"})
            assert (await there.live("far") or {})["data"] == {"v": "1"}
            await relay.mend()
            await there.has("far", {"v": "2"})
            await hub.ready("far")


async def test_one_connection_for_as_long_as_it_is_used(elsewhere: Elsewhere) -> None:
    """Syncs of one cluster share a connection, which is closed when the last of them is gone."""
    hub = elsewhere.hub
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1"), "too/cm.yaml": config_map("too", v="1")})
    await elsewhere.add("eu-1")

    def closed(engine: Engine) -> bool:
        return engine.client(elsewhere.place()) is None

    async with hub.agent() as engine:
        assert closed(engine)
        await elsewhere.put_sync("web", first)
        await hub.ready("web")
        one = engine.client(elsewhere.place())
        await elsewhere.put_sync("too", first)
        await hub.ready("too")
        assert engine.client(elsewhere.place()) is one
        await hub.delete_sync("web")
        await hub.gone("web")
        assert not closed(engine)
        await hub.delete_sync("too")
        await hub.gone("too")
        await until(lambda: closed(engine))


async def test_a_frozen_cluster_is_left_alone(elsewhere: Elsewhere) -> None:
    """Neither what is new nor drift is touched, nor is anything taken away, until it is active again."""
    hub, there = elsewhere.hub, elsewhere.there
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    second = hub.repository.commit({"web/cm.yaml": config_map("web", v="2"), "late/cm.yaml": config_map("late")})
    await elsewhere.add("eu-1")
    await elsewhere.add("us-1")
    async with hub.agent():
        await elsewhere.put_sync("web", first)
        await hub.ready("web")
        await elsewhere.put_cluster("eu-1", mode="Frozen")
        await hub.says("web", "the cluster is frozen")
        await elsewhere.put_sync("web", second)
        await vandalise(elsewhere, "web")
        await hub.delete_sync("web")
        await elsewhere.put_sync("late", second, cluster="us-1")
        await hub.ready("late")  # by now the agent has heard of all that was before
        await there.has("web", {"v": "x"})
        await elsewhere.put_cluster("eu-1")
        await hub.gone("web")
        assert await there.live("web") is None


async def test_nothing_new_arrives_where_it_is_cordoned(elsewhere: Elsewhere) -> None:
    """Drift from what was applied last is put right, also by a new agent; what is new comes once it is active."""
    hub, there = elsewhere.hub, elsewhere.there
    first = hub.repository.commit({"web/cm.yaml": config_map("web", v="1"), "new/cm.yaml": config_map("new", v="1")})
    second = hub.repository.commit({"web/cm.yaml": config_map("web", v="2")})
    await elsewhere.add("eu-1")
    await put_source(hub, f"main@sha1:{first}")
    async with hub.agent():
        await elsewhere.put_sync("web", first, source={"name": "platform"})
        await hub.ready("web")
        await elsewhere.put_cluster("eu-1", mode="Cordoned")
    await put_source(hub, f"main@sha1:{second}")
    async with hub.agent():
        sync = await hub.says("web", f"the cluster is cordoned: main@sha1:{first} stays, main@sha1:{second} waits")
        assert (sync.status.readiness, sync.status.problems[0].reason) == ("Current", "Cordoned")
        await vandalise(elsewhere, "web")
        await there.has("web", {"v": "1"})
        await elsewhere.put_sync("new", first)
        await hub.says("new", "what is new here waits")
        await elsewhere.put_sync("web", first, source={"name": "platform"}, targetNamespace="default")
        await hub.says("web", "what is new here waits")
        assert (await there.live("web") or {})["data"] == {"v": "1"}
        assert await there.live("new") is None
        await elsewhere.put_sync("web", first, source={"name": "platform"})
        await elsewhere.put_cluster("eu-1")
        await there.has("web", {"v": "2"})
        await there.has("new", {"v": "1"})
        await hub.ready("web")
