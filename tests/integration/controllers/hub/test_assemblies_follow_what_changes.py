"""What a cluster is told follows its mode, its labels and its Modules, each change in one write."""

from starling.api import Cluster, Module, ProxyAssemblage
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, config_map

REGION = {"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}


async def value(cluster: Downstream, name: str) -> str | None:
    """A value of the entry `base` there."""
    entry = (await cluster.entries())["base"]
    return next((each.value for each in entry.values if each.name == name), None)


async def test_a_cordoned_cluster_is_told_nothing_new(hub: Hub) -> None:
    """Entries and their values stay, whatever is committed or labelled, until it is Active again."""
    await hub.put_source()
    await hub.put_module(sync={"bindings": [REGION]})
    async with hub.running():
        cluster = await Downstream.ready(hub, labels={"ring": "canary", "region": "eu"})
        other = await Downstream.ready(hub, "other", {"ring": "canary", "region": "eu"})
        before = await cluster.delivers_until(lambda it: it.status.syncs)
        await other.delivers_until(lambda it: it.status.syncs)
        await hub.patch(Cluster, "c", {"spec": {"mode": "Cordoned"}})
        await hub.sees(ProxyAssemblage, "c", lambda it: it.spec.mode == "Cordoned")
        await cluster.delivers()
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"region": "us"}}})
        commit = hub.repository.commit({"base/one.yaml": config_map("one", v="2")})
        module = await hub.sees(Module, "base", lambda it: commit in it.status.revision)
        await hub.put_module("second")
        second = await hub.sees(Module, "second", lambda it: bool(it.status.target))
        await other.runs(base=module.status.target, second=second.status.target)
        for name in ("base", "second"):
            held = await hub.sees(Module, name, lambda it: it.status.summary.held == it.status.summary.succeeded == 1)
            assert "c" not in {each.cluster for each in held.status.admitted}
        proxy = await cluster.proxy()
        assert proxy is not None
        assert proxy.spec.syncs == before.spec.syncs
        await hub.patch(Cluster, "c", {"spec": {"mode": "Active"}})
        await cluster.runs(base=module.status.target, second=second.status.target)
        assert await value(cluster, "REGION") == "us"


async def test_another_label_is_another_value_there_only(hub: Hub) -> None:
    """A label that bindings use changes the cluster's own values at once, without a rollout, and no other's."""
    await hub.put_source()
    await hub.put_module(sync={"bindings": [REGION]}, rollout={"maxConcurrent": "100%"})
    async with hub.running():
        a = await Downstream.ready(hub, "a", {"ring": "canary", "region": "eu"})
        b = await Downstream.ready(hub, "b", {"ring": "canary", "region": "eu"})
        for each in (a, b):
            await each.delivers_until(lambda it: it.status.syncs)
        before = await hub.sees(Module, "base", lambda it: it.status.summary.succeeded == 2)
        untouched = await b.proxy()
        await hub.patch(Module, "base", {"spec": {"suspend": True}})
        await hub.sees(Module, "base", lambda it: it.status.phase == "Suspended")
        await hub.patch(Cluster, "a", {"metadata": {"labels": {"region": "us"}}})

        await a.delivers_until(lambda it: {"us"} & {each.value for each in it.spec.syncs[0].values})
        module = await hub.get(Module, "base")
        assert module is not None
        assert module.status.admission == before.status.admission
        again = await b.proxy()
        assert again is not None
        assert untouched is not None
        assert again.metadata.generation == untouched.metadata.generation


async def test_modules_that_change_at_once_cost_one_write(hub: Hub) -> None:
    """A commit that moves several Modules is one new generation of each cluster's proxy, not one for each Module."""
    names, rounds = [f"base-{number}" for number in range(4)], 4
    await hub.put_source()
    for name in names:
        await hub.put_module(name)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        before = await moved(hub, cluster, names, hub.repository.head())
        after = before
        for number in range(rounds):
            commit = hub.repository.commit({"base/one.yaml": config_map("one", round=str(number))})
            after = await moved(hub, cluster, names, commit)
        # Those that are a little late, on a machine that is busy, may miss one write in a few.
        assert after.metadata.generation - before.metadata.generation <= rounds + rounds // 2


async def moved(hub: Hub, cluster: Downstream, names: list[str], commit: str) -> ProxyAssemblage:
    """What the cluster is told once all these Modules are at a commit, there and in their own words."""
    modules = [await hub.sees(Module, name, lambda it: commit in it.status.revision) for name in names]
    proxy = await cluster.runs(**{each.metadata.name: each.status.target for each in modules})
    for name in names:
        await hub.sees(Module, name, lambda it: it.status.phase == "Succeeded" and not it.status.admitted)
    return proxy


async def test_one_modules_mistake_is_not_anothers(hub: Hub) -> None:
    """A binding that has no value there is told of its Module, and the cluster's other Modules go on."""
    await hub.put_source()
    await hub.put_module(sync={"bindings": [REGION]})
    await hub.put_module("sound")
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await hub.says(Module, "base", "/metadata/labels/region", "Stalled")
        first = await hub.sees(Module, "sound", lambda it: bool(it.status.target))
        await cluster.runs(sound=first.status.target)
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"region": "eu"}}})
        await cluster.delivers_until(lambda it: len(it.status.syncs) == 2)
        # With entries of both, the label goes again: one stays as it is, the other moves on.
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"region": None}}})
        before = (await cluster.entries())["base"]
        await hub.put_module("sound", {"timeout": "7m"})
        sound = await hub.sees(Module, "sound", lambda it: it.status.target not in ("", first.status.target))
        await cluster.runs(base=before.target, sound=sound.status.target)
        assert (await cluster.entries())["base"] == before
