"""Module: a target is written down before its status names it, for ever the same, and only what counts is one."""

from starling.api import Module, Source
from starling.controllers.revisions import MODULE_LABEL, REVISIONS
from starling.kube import Changed, Selection, watch
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, Json, at_work, condition, config_map
from tests.waiting import until


async def note_targets(hub: Hub, seen: dict[str, int]) -> None:
    """For each target, the resourceVersion at which the Module named it first."""
    selection = Selection(hub.namespace)
    async for event in watch(hub.client, Module.declaration.resource, Module, selection):
        if isinstance(event, Changed) and (target := event.object.status.target):
            seen.setdefault(target, int(event.object.metadata.resource_version))


async def test_a_target_is_written_down_before_it_is_named(hub: Hub) -> None:
    """Each has a ControllerRevision that is older than the first status which names it, and never changes."""
    await hub.put_source()
    await hub.put_module()
    named: dict[str, int] = {}
    async with hub.running(), at_work(note_targets(hub, named)):
        await hub.sees(Module, "base", lambda it: bool(it.status.target))
        before = await hub.revisions()
        for number in ("2", "3"):
            commit = hub.repository.commit({"base/one.yaml": config_map("one", v=number)})
            await hub.sees(Module, "base", lambda it, commit=commit: commit in it.status.revision)  # type: ignore[misc]
        await until(lambda: len(named) == 3)
        written = await hub.revisions()
        assert written.keys() == named.keys()
        assert all(int(written[target]["metadata"]["resourceVersion"]) < named[target] for target in named)
        assert all(written[target] == before[target] for target in before)
        assert sorted(each["revision"] for each in written.values()) == [1, 2, 3]


async def test_why_a_target_failed_is_kept(hub: Hub) -> None:
    """Where, and in the cluster's own words; also when all is as it was before, and until it is made good."""
    await hub.put_source()
    await hub.put_module(rollout={"onFailure": "Rollback"})
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        good = (await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")).status.target
        cluster.states["base"] = "failed: Deployment web: no such image"
        commit = hub.repository.commit({"base/one.yaml": config_map("one", v="bad")})
        await hub.sees(Module, "base", lambda it: commit in it.status.revision)
        await cluster.delivers_until(lambda it: it.status.syncs[0].target != good)
        await hub.sees(Module, "base", lambda it: bool(it.status.failures))
        cluster.states.clear()
        await cluster.runs(base=good)
        module = await hub.sees(Module, "base", lambda it: it.status.phase == "RolledBack")
        assert "the newest target failed on c: Deployment web: no such image" in condition(module, "Ready")[2]
        [failure] = module.status.failures
        assert (failure.target, failure.clusters, failure.by) == (module.status.target, ("c",), "")
        assert module.status.last_good == good


async def test_ten_are_kept_and_those_in_use(hub: Hub) -> None:
    """Of more than ten, the oldest go; the one that a cluster which can't be reached is at stays."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        first = (await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")).status.target
        await cluster.goes()
        for number in range(2, 15):
            sync = {"timeout": f"{number}h"}
            after = await hub.put_module(sync=sync)
            generation = after.metadata.generation
            module = await hub.sees(
                Module,
                "base",
                lambda it, generation=generation: it.status.observed_generation == generation,  # type: ignore[misc]
            )

        async def eleven() -> bool:
            return len(await hub.revisions()) == 11

        await until(eleven)
        kept = await hub.revisions()
        assert {first, module.status.target} <= kept.keys()
        assert sorted(each["revision"] for each in kept.values()) == [1, *range(5, 15)]


async def test_a_commit_that_changes_nothing_moves_nothing(hub: Hub) -> None:
    """Another commit with the same content is noted, and is neither another target nor another write to the cluster."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        before = await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")
        proxy = await cluster.proxy()
        assert proxy is not None
        text = config_map("one", v="1")
        commit = hub.repository.commit({"base/one.yaml": f"# said with more words\n{text}", "elsewhere/two.yaml": text})
        after = await hub.sees(Module, "base", lambda it: commit in it.status.source_revision)
        assert (after.status.target, after.status.admission) == (before.status.target, before.status.admission)
        assert after.status.revision == before.status.revision
        assert len(await hub.revisions()) == 1
        # A second Module is written there next; its write finds the first as it was.
        await hub.put_module("second")
        again = await cluster.delivers_until(lambda it: len(it.spec.syncs) == 2)
        assert again.metadata.generation == proxy.metadata.generation + 1
        assert again.spec.syncs[0] == proxy.spec.syncs[0]


async def put_nonsense(hub: Hub, module: Module, name: str, data: Json) -> None:
    """A ControllerRevision of the Module's that isn't Starling's."""
    owner = {"apiVersion": "starling.dev/v1alpha1", "kind": "Module", "name": "base", "uid": module.metadata.uid}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": name, "labels": {MODULE_LABEL: "base"}, "ownerReferences": [owner]},
        "revision": 1,
        "data": data,
    }
    await hub.client.create(REVISIONS, body, namespace=hub.namespace)


async def test_what_bears_the_label_and_is_not_ours_harms_nobody(hub: Hub) -> None:
    """A ControllerRevision that makes no sense, there before the hub starts, keeps no Module from its work."""
    await hub.put_source()
    module = await hub.put_module()
    await put_nonsense(hub, module, "number", {"target": 7})
    await put_nonsense(hub, module, "nothing", {})
    async with hub.running():
        await hub.sees(Module, "base", lambda it: bool(it.status.target))


async def test_one_that_someone_deletes_is_written_again(hub: Hub) -> None:
    """The target that a Module names doesn't stay without what it stands for: a cluster that comes later gets it."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        target = (await hub.sees(Module, "base", lambda it: bool(it.status.target))).status.target
        before = (await hub.revisions())[target]["metadata"]
        await hub.client.delete(REVISIONS.ref(before["name"], hub.namespace))
        cluster = await Downstream.ready(hub)
        await cluster.runs(base=target)
        assert (await hub.revisions())[target]["metadata"]["uid"] != before["uid"]


async def test_what_is_in_the_way_is_named(hub: Hub) -> None:
    """Where a stranger's ControllerRevision has a target's name, the Module says what to delete, and then goes on."""
    await hub.put_source()
    module = await hub.put_module()
    async with hub.running():
        await hub.sees(Module, "base", lambda it: bool(it.status.target))
    ((target, revision),) = (await hub.revisions()).items()
    name = revision["metadata"]["name"]
    await hub.client.delete(REVISIONS.ref(name, hub.namespace))
    await put_nonsense(hub, module, name, {"target": 7})
    async with hub.running():
        await hub.says(Module, "base", f"{hub.namespace}/{name} isn't Starling's", "Stalled")
        await hub.client.delete(REVISIONS.ref(name, hub.namespace))
        cluster = await Downstream.ready(hub)
        await cluster.runs(base=target)


async def test_one_that_is_suspended_admits_nobody(hub: Hub) -> None:
    """What it wants next is known, what runs stays; once it isn't suspended any more, that arrives."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        proxy = await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.patch(Module, "base", {"spec": {"suspend": True}})
        commit = hub.repository.commit({"base/one.yaml": config_map("one", v="2")})
        module = await hub.sees(Module, "base", lambda it: commit in it.status.revision)
        assert module.status.phase == "Suspended"
        assert not module.status.admitted
        assert module.status.target != proxy.spec.syncs[0].target
        assert (await cluster.entries())["base"] == proxy.spec.syncs[0]
        await hub.patch(Module, "base", {"spec": {"suspend": False}})
        await cluster.runs(base=module.status.target)


async def test_a_source_that_is_not_there_is_told_until_it_is(hub: Hub) -> None:
    """It is named; once it is there, and has fetched, the Module goes on by itself, and stays when it goes again."""
    await hub.put_module()
    async with hub.running():
        module = await hub.says(Module, "base", f"no Source {hub.namespace}/app", "Stalled")
        assert not module.status.target
        await hub.put_source()
        found = await hub.sees(Module, "base", lambda it: bool(it.status.target))
        await hub.delete(Source, "app")
        module = await hub.says(Module, "base", f"no Source {hub.namespace}/app", "Stalled")
        assert module.status.target == found.status.target
        assert condition(module)[0] == "False"
