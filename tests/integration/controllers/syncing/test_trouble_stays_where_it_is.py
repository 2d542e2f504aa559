"""What goes wrong with one entry, or with an Assemblage itself, costs no other entry its Sync, and nobody an object."""

import asyncio

import msgspec
from aiohttp import web

from starling.api import Assemblage, Sync
from starling.api.v1alpha1 import Entry
from starling.controllers.assemblage import sync_document, sync_spec
from starling.kube import DeleteOptions
from tests.integration.controllers.syncing.stage import Stage, config_map
from tests.integration.engine.traffic import Asked, Traffic
from tests.waiting import until

SYNCS, ASSEMBLAGES = (each.declaration.resource for each in (Sync, Assemblage))


def commit(stage: Stage, *names: str) -> str:
    """A commit with a ConfigMap in a folder for each name."""
    return stage.repository.commit({f"{name}/cm.yaml": config_map(name, v="1") for name in names})


def stop_telling(counted: Traffic) -> asyncio.Event:
    """Have the API server tell nothing more of Assemblages than what a list says, until this is set."""
    go_on = asyncio.Event()

    async def hold(asked: Asked) -> None:
        if asked.verb == "watch" and asked.name == ASSEMBLAGES.plural:
            await go_on.wait()

    counted.before = hold
    return go_on


async def test_an_entry_that_is_refused_holds_up_no_other(stage: Stage) -> None:
    """An entry that the API server refuses has failed, with its words; others are synced, and what left is removed."""
    first = commit(stage, "db", "old", "web")
    await stage.assemble(stage.entry("old", first, "t1:o"))
    async with stage.agent():
        await stage.states({"old": ("t1:o", "succeeded")})
        await stage.assemble(stage.entry("db", first, "t1:d", interval="soon"), stage.entry("web", first, "t1:w"))
        found = await stage.states({"db": ("t1:d", "failed"), "web": ("t1:w", "succeeded")})
        assert "must be a duration" in found.status.syncs[0].message
        assert await stage.live("old") is None
        assert await stage.live("web") is not None
        await stage.assemble(stage.entry("db", first, "t1:e"), stage.entry("web", first, "t1:w"))
        await stage.states({"db": ("t1:e", "succeeded"), "web": ("t1:w", "succeeded")})


async def test_an_entry_that_can_not_be_written_now_is_tried_again(stage: Stage, counted: Traffic) -> None:
    """While a webhook is down its entry is on its way, the rest goes on, and nobody is asked all the time."""
    first, down, tried = commit(stage, "db", "old", "web"), True, 0

    async def refuse(asked: Asked) -> None:
        nonlocal tried
        if down and asked.verb == "apply" and asked.path == SYNCS.ref("db", stage.namespace).path:
            tried += 1
            raise web.HTTPInternalServerError(text=f"failed calling webhook from port {tried}")

    counted.before = refuse
    await stage.assemble(stage.entry("old", first, "t1:o"))
    async with stage.agent(counted.access):
        await stage.states({"old": ("t1:o", "succeeded")})
        await stage.assemble(stage.entry("db", first, "t1:d"), stage.entry("web", first, "t1:w"))
        found = await stage.states({"db": ("t1:d", "updating"), "web": ("t1:w", "succeeded")})
        assert "failed calling webhook" in found.status.syncs[0].message
        assert await stage.live("old") is None
        before = tried
        for _ in range(100):  # in that many requests, many more tries would go, if each one's words called for another
            await stage.assemblage()
        assert tried < before + 5
        down = False
        await stage.states({"db": ("t1:d", "succeeded"), "web": ("t1:w", "succeeded")})


async def test_syncs_that_go_with_their_assemblage_leave_their_objects(stage: Stage, counted: Traffic) -> None:
    """A garbage collector that is faster than the agent, which hasn't heard of the Assemblage's end, prunes nothing."""
    first = commit(stage, "web")
    await stage.assemble(stage.entry("web", first, "t1:a"))
    go_on = stop_telling(counted)
    async with stage.agent(counted.access):
        await stage.states({"web": ("t1:a", "succeeded")})
        before = await stage.live("web")
        assert before is not None
        foreground = DeleteOptions(propagation="Foreground")
        await stage.client.delete(ASSEMBLAGES.ref("prod", stage.namespace), foreground)
        made = await stage.ready("web")
        await stage.delete_sync("web")

        async def is_another() -> bool:
            sync = await stage.sync("web")
            return sync is None or sync.metadata.uid != made.metadata.uid

        await until(is_another)
        go_on.set()
        await stage.gone("web")
        live = await stage.live("web")
        assert live is not None
        assert live["metadata"]["uid"] == before["metadata"]["uid"]


async def test_who_is_behind_removes_nothing_of_what_is_newer(stage: Stage, counted: Traffic) -> None:
    """An agent that knows an old Assemblage leaves the Sync of an entry that it hasn't heard of, and hears of it."""
    first = commit(stage, "db", "web")
    one, two = stage.entry("web", first, "t1:a"), stage.entry("db", first, "t1:b")
    await stage.assemble(one)
    stop_telling(counted)
    async with stage.agent(counted.access):
        await stage.states({"web": ("t1:a", "succeeded")})
        newer = await stage.assemble(one, two)
        document = sync_document(newer, "db", sync_spec(msgspec.convert(two, Entry)))
        made = (await stage.client.apply(SYNCS.ref("db", stage.namespace), document)).decode(Sync)
        await stage.states({"web": ("t1:a", "succeeded"), "db": ("t1:b", "succeeded")})
        found = await stage.sync("db")
        assert found is not None
        assert found.metadata.uid == made.metadata.uid
        assert "delete" not in counted.count()
