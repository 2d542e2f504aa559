"""Deleting a Sync of another cluster: its objects go or stay as it says, and a cluster that is away can't jam it."""

import msgspec
import pytest

from starling.api import Cluster
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.controllers.syncing.elsewhere import Elsewhere
from tests.integration.controllers.syncing.stage import SETTINGS, config_map
from tests.integration.relay import Relay
from tests.waiting import until

IMPATIENT = msgspec.structs.replace(SETTINGS, give_up_after=1.0)
CLUSTERS = Cluster.declaration.resource


@pytest.fixture
async def web(elsewhere: Elsewhere) -> str:
    """A commit with one object."""
    return elsewhere.hub.repository.commit({"web/cm.yaml": config_map("web", v="1")})


@pytest.mark.parametrize(("policy", "stays"), [("Prune", False), ("Orphan", True)])
async def test_it_goes_as_it_says(elsewhere: Elsewhere, web: str, policy: str, stays: bool) -> None:
    """Its objects are deleted on the other cluster, or left there without our marks."""
    hub = elsewhere.hub
    await elsewhere.add("eu-1")
    async with hub.agent():
        await elsewhere.put_sync("web", web, deletionPolicy=policy)
        await hub.ready("web")
        await hub.delete_sync("web")
        await hub.gone("web")
    live = await elsewhere.there.live("web")
    assert (live is not None) is stays
    assert live is None or "annotations" not in live["metadata"]


async def test_a_cluster_that_is_away_is_waited_for(elsewhere: Elsewhere, web: str) -> None:
    """Until when, the Sync says; when the cluster is back in time, its objects are taken away there."""
    hub = elsewhere.hub
    async with Relay(elsewhere.port) as relay:
        await elsewhere.add("eu-1", relay.port)
        async with hub.agent():
            await elsewhere.put_sync("web", web)
            await hub.ready("web")
            relay.cut()
            await hub.says("web", f"Cluster {elsewhere.place()}: ")
            await hub.delete_sync("web")
            sync = await hub.says("web", f"it is being deleted, and waits for Cluster {elsewhere.place()} until ")
            assert (sync.status.readiness, sync.status.problems[0].reason) == ("Unknown", "Unreachable")
            await relay.mend()
            await hub.gone("web")
    assert await elsewhere.there.live("web") is None


async def test_a_dead_cluster_is_given_up(elsewhere: Elsewhere, web: str) -> None:
    """After its time, also for an agent that never saw it alive, with an Event that names what may be left."""
    hub = elsewhere.hub
    await elsewhere.add("eu-1")
    async with hub.agent():
        await elsewhere.put_sync("web", web)
        await hub.ready("web")
    async with Relay(elsewhere.port) as relay:
        relay.cut()
        await elsewhere.put_kubeconfig("eu-1", relay.port)
        async with hub.agent(settings=IMPATIENT):
            await hub.delete_sync("web")
            await hub.gone("web")
            left = f"and these may be left there: ConfigMap {hub.namespace}/web"
            note = f"Cluster {elsewhere.place()} can't be reached, {left}"

            async def told() -> bool:
                return ("LeftBehind", note) in await hub.events("web")

            await until(told)
    assert await elsewhere.there.live("web") is not None


async def test_a_slow_cluster_is_not_given_up(elsewhere: Elsewhere, web: str) -> None:
    """One that answers is waited for, however long its objects take to go."""
    hub, there = elsewhere.hub, elsewhere.there
    ref = CONFIG_MAPS.ref("web", there.namespace)
    await elsewhere.add("eu-1")
    async with hub.agent(settings=IMPATIENT) as engine:
        await elsewhere.put_sync("web", web)
        await hub.ready("web")
        await there.client.merge_patch(ref, {"metadata": {"finalizers": ["example.com/slow"]}}, manager="other")
        await hub.delete_sync("web")
        looks: list[str] = []
        engine.on_status(lambda seen: looks.append(seen.status.readiness.value))
        await until(lambda: looks.count("Terminating") > 3)
        assert await hub.sync("web") is not None
        await there.client.merge_patch(ref, {"metadata": {"finalizers": []}}, manager="other")
        await hub.gone("web")


async def test_what_never_was_there_is_not_waited_for(elsewhere: Elsewhere, web: str) -> None:
    """A Sync that applied nothing goes at once, dead cluster or not."""
    hub = elsewhere.hub
    async with Relay(elsewhere.port) as relay:
        relay.cut()
        await elsewhere.add("eu-1", relay.port)
        async with hub.agent():
            await elsewhere.put_sync("web", web)
            assert (await hub.says("web", f"Cluster {elsewhere.place()}: ")).metadata.finalizers
            await hub.delete_sync("web")
            await hub.gone("web")


@pytest.mark.parametrize("lingers", [False, True], ids=["gone", "being deleted"])
async def test_who_removes_a_cluster_lets_go_of_it(elsewhere: Elsewhere, web: str, lingers: bool) -> None:
    """Without its Cluster a Sync says so, and goes at once; its objects stay."""
    hub, ref = elsewhere.hub, CLUSTERS.ref("eu-1", elsewhere.hub.namespace)
    await elsewhere.add("eu-1")
    async with hub.agent():
        await elsewhere.put_sync("web", web)
        await hub.ready("web")
        if lingers:
            await hub.client.merge_patch(ref, {"metadata": {"finalizers": ["example.com/lingers"]}}, manager="other")
        await hub.client.delete(ref)
        said = "is being deleted" if lingers else f"there is no Cluster {elsewhere.place()}"
        assert (await hub.says("web", said)).status.readiness == "Unknown"
        await hub.delete_sync("web")
        await hub.gone("web")
        if lingers:
            await hub.client.merge_patch(ref, {"metadata": {"finalizers": []}}, manager="other")
    live = await elsewhere.there.live("web")
    assert live is not None
    assert live["data"] == {"v": "1"}
