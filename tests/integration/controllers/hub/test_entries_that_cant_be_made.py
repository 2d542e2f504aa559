"""A Module whose entry can't be made for a cluster leaves that one as it is, and holds up no other Module."""

from typing import Final

from starling.api import Cluster, Module
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, condition

WRONG: Final = [{"selector": {"matchLabels": {"odd": "yes"}}, "values": {"a": 1}}]
"""Values, of what isn't a chart."""


async def test_a_cluster_that_cant_have_it_is_left_as_it_is(hub: Hub) -> None:
    """The condition names the cluster, which isn't admitted, and all goes on once it is mended."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub, labels={"ring": "canary", "odd": "yes"})
        await cluster.delivers_until(lambda it: it.status.syncs)
        before = (await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")).status
        await hub.put_module(overrides=WRONG)
        module = await hub.says(Module, "base", "cluster c can't have it: ")
        assert condition(module)[0] == "False"
        assert (module.status.admitted, module.status.summary.held) == ((), 1)
        await hub.put_module(sync={"timeout": "7m"})
        await cluster.delivers_until(lambda it: any(each.target != before.target for each in it.status.syncs))
        await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded" and it.status.target != before.target)


async def test_other_modules_go_on(hub: Hub) -> None:
    """An entry that can't be made any more, since the cluster has another label, stays as it is; others are made."""
    await hub.put_source()
    await hub.put_module(overrides=WRONG)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        proxy = await cluster.proxy()
        assert proxy is not None
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"odd": "yes"}}})
        await hub.put_module("other")
        await cluster.delivers_until(lambda it: len(it.status.syncs) == 2)
        after = await cluster.proxy()
        assert after is not None
        assert after.spec.syncs[0] == proxy.spec.syncs[0]
        assert any("the entry base stays as it is" in line for line in hub.log)


async def test_who_is_on_its_way_gets_there(hub: Hub) -> None:
    """A newer version that it can't have, while it moves, holds up neither the hub nor other Modules."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub, labels={"ring": "canary", "odd": "yes"})
        cluster.states["base"] = "updating"
        await cluster.delivers_until(lambda it: it.status.syncs)
        moving = await hub.sees(Module, "base", lambda it: it.status.summary.updating == 1)
        await hub.put_module(overrides=WRONG)
        module = await hub.sees(Module, "base", lambda it: it.status.target != moving.status.target)
        assert module.status.admitted == moving.status.admitted
        await hub.put_module("other")
        await cluster.delivers_until(lambda it: len(it.status.syncs) == 2)
