"""Delivery writes onto what it has seen and nothing else, and asks no more than it must."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starling.api import Assemblage
from starling.kube import Client
from tests.integration.controllers.delivering.world import World, entry
from tests.integration.engine.traffic import Asked, Traffic, traffic
from tests.waiting import until

ASSEMBLAGES = Assemblage.declaration.resource


@asynccontextmanager
async def counted(world: World) -> AsyncIterator[tuple[World, Traffic, Traffic]]:
    """The same world, with what the hub asks of itself and of the cluster counted; the test's own requests aren't."""
    async with traffic(world.hub_cluster) as hub, traffic(world.downstream_cluster) as downstream:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": (await downstream.access()).server}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "current-context": "c",
        }
        await world.add_push(kubeconfig_text=json.dumps(config).encode())
        async with Client(hub.access) as client:
            yield (
                World(client, world.downstream, world.namespace, world.hub_cluster, world.downstream_cluster),
                hub,
                downstream,
            )


def local(world: World, *entries: dict[str, Any]) -> dict[str, Any]:
    """An Assemblage as someone else wrote it."""
    return {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Assemblage",
        "metadata": {"name": "fleet", "namespace": world.namespace},
        "spec": {"instance": "fleet", "syncs": list(entries)},
    }


async def test_an_assemblage_that_came_meanwhile_is_not_overwritten(world: World) -> None:
    """One that is made between our look and our write keeps its entries: they are found and imported."""
    await world.propose(entry("new"))
    async with counted(world) as (hub_world, _, downstream):

        async def meddle(asked: Asked) -> None:
            if asked.verb == "create" and asked.path.endswith("assemblages"):
                downstream.before = None
                await world.downstream.create(ASSEMBLAGES, local(world, entry("old")), namespace=world.namespace)

        downstream.before = meddle
        async with hub_world.pushing():
            await world.runs("old", "new")
            assert downstream.before is None


async def test_an_entry_that_came_meanwhile_is_not_removed(world: World) -> None:
    """What is added between our look and our write stays, as long as the hub doesn't know it."""
    await world.downstream.create(ASSEMBLAGES, local(world, entry("old")), namespace=world.namespace)
    await world.propose(entry("new"))
    async with counted(world) as (hub_world, _, downstream):

        async def meddle(asked: Asked) -> None:
            if asked.verb == "apply" and asked.path.endswith("assemblages/fleet"):
                downstream.before = None
                patch = {"spec": {"syncs": [entry("old"), entry("late")]}}
                await world.downstream.merge_patch(ASSEMBLAGES.ref("fleet", world.namespace), patch)

        downstream.before = meddle
        async with hub_world.pushing():
            await world.runs("old", "late", "new")
            assert downstream.before is None


async def test_a_change_costs_one_write_there_and_two_here(world: World) -> None:
    """A new target: one write of the Assemblage, a report of its beginning and one of its end, a few reads."""
    await world.propose(entry("base"))
    async with counted(world) as (hub_world, hub, downstream), hub_world.pushing():
        first = await world.runs("base")
        await world.adopt()
        await world.follows()
        await world.stands({"name": "base", "target": "t1:one", "state": "succeeded"})
        await world.reported()
        hub.asked.clear()
        downstream.asked.clear()

        await world.propose(entry("base", "t1:two"), adopted=first.metadata.uid)
        await world.follows()
        await world.stands({"name": "base", "target": "t1:two", "state": "updating"})
        await until(lambda: _told(world, "updating"))
        await world.stands({"name": "base", "target": "t1:two", "state": "succeeded"})
        await until(lambda: _told(world, "succeeded"))
        await world.reported()
        assert [each.verb for each in downstream.writes()] == ["apply"]
        assert [each.path.rpartition("/")[2] for each in hub.writes()] == ["status", "status"]
        assert len(hub.gets()) <= 3
        assert downstream.count().keys() <= {"apply", "watch"}


async def _told(world: World, state: str) -> bool:
    proxy = await world.proxy()
    return proxy is not None and any((each.target, each.state) == ("t1:two", state) for each in proxy.status.syncs)
