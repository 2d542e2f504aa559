"""The assembler takes over what a cluster runs before it gives it anything, and stays the only one who writes there."""

import json
from collections.abc import Callable

import msgspec

from starling.api import Module, ProxyAssemblage
from starling.api.v1alpha1 import Entry
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, Json

STRANGER = msgspec.convert(
    {
        "name": "legacy",
        "unit": "elsewhere/n/Module.legacy@c",
        "target": "t1:of-another-hub",
        "admission": 40,
        "source": {"git": {"url": "https://git.example/legacy.git", "commit": "b" * 40}},
        "path": "old",
        "prune": False,
        "values": [{"name": "CLUSTER_NAME", "value": "c"}, {"name": "REGION", "value": "eu"}],
    },
    Entry,
)


async def test_nothing_is_compiled_before_adoption(hub: Hub) -> None:
    """A cluster that is there and hasn't told what it runs has a proxy without entries, and is admitted to nothing."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        silent = await Downstream.enrol(hub, "silent")
        await silent.comes()
        other = await Downstream.ready(hub, "other")
        await other.delivers_until(lambda it: it.status.syncs)
        module = await hub.sees(Module, "base", lambda it: it.status.summary.succeeded == 1)
        assert module.status.summary.total == 2
        assert not module.status.admitted
        proxy = await hub.sees_entries_of("silent", [])
        assert (proxy.spec.adopted, proxy.spec.syncs, proxy.metadata.generation) == ("", (), 1)
        await silent.adopted()
        await silent.runs(base=module.status.target)


async def test_what_it_runs_is_taken_over_as_it_is(hub: Hub) -> None:
    """One write brings all its entries, verbatim but for the other hub's count, and says that they are known."""
    async with hub.running():
        cluster = await Downstream.enrol(hub)
        await cluster.comes()
        cluster.holds(STRANGER)
        await cluster.adopted()
        proxy = await cluster.proxy()
        assert proxy is not None
        assert proxy.metadata.generation == 2
        assert proxy.spec.adopted == "a-1"
        assert proxy.spec.syncs == (msgspec.structs.replace(STRANGER, admission=0),)
        await hub.put_source()
        await hub.put_module()
        proxy = await cluster.delivers_until(lambda it: len(it.spec.syncs) == 2)
        assert proxy.spec.syncs[1] == msgspec.structs.replace(STRANGER, admission=0)


async def test_a_count_from_elsewhere_does_not_hold_a_module_up(hub: Hub) -> None:
    """An entry of a Module's name that comes with a huge counter moves to the Module's target all the same."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.enrol(hub)
        await cluster.comes()
        cluster.holds(msgspec.structs.replace(STRANGER, name="base", admission=2**40))
        await cluster.adopted()
        module = await hub.sees(Module, "base", lambda it: bool(it.status.target))
        proxy = await cluster.runs(base=module.status.target)
        assert proxy.spec.syncs[0].unit == f"fleet/{hub.namespace}/Module.base@c"


async def test_a_proxy_that_someone_deletes_is_made_anew(hub: Hub) -> None:
    """It begins without entries, and has all of them again once the cluster has told what it runs."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        before = await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.delete(ProxyAssemblage, "c")
        fresh = await hub.sees(ProxyAssemblage, "c", lambda it: it.metadata.uid != before.metadata.uid)
        assert (fresh.spec.adopted, fresh.spec.syncs) == ("", ())
        await cluster.adopted()
        again = await cluster.runs(base=before.spec.syncs[0].target)
        assert again.spec.adopted == before.spec.adopted
        assert cluster.local is not None
        assert cluster.local.metadata.uid == before.spec.adopted


async def test_an_assemblage_made_anew_is_taken_over_again(hub: Hub) -> None:
    """What another Assemblage there holds joins the entries that are known."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        before = await cluster.delivers_until(lambda it: it.status.syncs)
        cluster.holds(STRANGER, uid="a-2")
        after = await cluster.runs(base=before.spec.syncs[0].target, legacy=STRANGER.target)
        assert after.spec.adopted == "a-2"


EDITS: dict[str, Callable[[Json], None]] = {
    "a value": lambda spec: spec["syncs"][0]["values"].append({"name": "EVIL", "value": "1"}),
    "the path": lambda spec: spec["syncs"][0].update(path="elsewhere"),
    "the target": lambda spec: spec["syncs"][0].update(target="t1:else"),
    "no entries": lambda spec: spec.update(syncs=[]),
    "the mode": lambda spec: spec.update(mode="Frozen"),
    "released": lambda spec: spec.update(released=True),
    "the instance": lambda spec: spec.update(instance="other"),
}


async def test_a_spec_that_someone_edits_is_put_right(hub: Hub) -> None:
    """Whatever was changed by hand is as before soon."""
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        before = await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")
        for what, edit in EDITS.items():
            spec = json.loads(msgspec.json.encode(before.spec))
            edit(spec)
            changed = await hub.patch(ProxyAssemblage, "c", {"spec": {"mode": "Active", "released": False, **spec}})
            assert changed.spec != before.spec, what
            await cluster.delivers_until(
                lambda it: (
                    [msgspec.structs.replace(each, admission=1) for each in it.spec.syncs]
                    == [msgspec.structs.replace(each, admission=1) for each in before.spec.syncs]
                    and msgspec.structs.replace(it.spec, syncs=()) == msgspec.structs.replace(before.spec, syncs=())
                )
            )
