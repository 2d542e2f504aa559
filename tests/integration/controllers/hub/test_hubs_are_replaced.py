"""A hub that starts anew goes on from what is written down, and writes nothing where nothing is to be done."""

from starling.api import Cluster, Module, ProxyAssemblage, Source
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, config_map


async def versions(hub: Hub) -> dict[str, str]:
    """The resourceVersion of each object."""
    found = [await hub.get(kind, name) for kind, name in ((Cluster, "c"), (Module, "base"), (Source, "app"))]
    proxy = await hub.get(ProxyAssemblage, "c")
    return {type(each).__name__: each.metadata.resource_version for each in (*found, proxy) if each is not None}


async def test_at_rest_it_writes_nothing(hub: Hub) -> None:
    """With everything in order, another hub with an empty disk changes no object of ours."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded" and not it.status.admitted)
    before = await versions(hub)
    hub.forget_files()
    async with hub.running():
        await Downstream.ready(hub, "newcomer", {"ring": "other"})  # by then, all has been looked at
        await hub.put_module("other", selector={"matchLabels": {"ring": "other"}})
        await hub.sees_entries_of("newcomer", ["other"])
    assert await versions(hub) == before


async def test_half_way_it_goes_on(hub: Hub) -> None:
    """Who was admitted by the hub before is not admitted twice, and the next one moves when that has arrived."""
    await hub.put_source()
    await hub.put_module(rollout={"maxConcurrent": 1})
    async with hub.running():
        a, b = await Downstream.ready(hub, "a"), await Downstream.ready(hub, "b")
        a.states["base"] = "updating"
        await a.delivers_until(lambda it: it.status.syncs)
        before = await hub.sees(Module, "base", lambda it: it.status.summary.updating == 1)
    commit = hub.repository.commit({"base/one.yaml": config_map("one", v="2")})
    hub.forget_files()
    async with hub.running():
        await a.comes()
        await b.comes()
        module = await hub.sees(Module, "base", lambda it: commit in it.status.revision)
        assert [each.cluster for each in module.status.admitted] == ["a"]
        assert module.status.admission > before.status.admission
        assert await b.entries() == {}
        a.states.clear()
        await a.runs(base=module.status.target)
        await b.runs(base=module.status.target)
