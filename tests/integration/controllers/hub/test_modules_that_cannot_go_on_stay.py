"""Module: what is wrong is said in its conditions, nothing moves, and who was admitted stays so."""

from typing import Any

import pytest

from starling.api import Module, RolloutPolicy
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, config_map


async def half_way(hub: Hub) -> tuple[Module, Downstream, Downstream]:
    """A Module that may go to one cluster at a time: admitted on `a`, which is at it, and not yet on `b`."""
    await hub.put_source()
    await hub.put_module(rollout={"maxConcurrent": 1})
    a, b = await Downstream.ready(hub, "a"), await Downstream.ready(hub, "b")
    a.states["base"] = "updating"
    await a.delivers_until(lambda it: it.status.syncs)
    module = await hub.sees(Module, "base", lambda it: it.status.summary.updating == 1)
    assert [each.cluster for each in module.status.admitted] == ["a"]
    return module, a, b


async def test_a_policy_that_isnt_there_stops_it(hub: Hub) -> None:
    """It is Stalled and says why; who was admitted stays so, and nobody else moves though there is room."""
    async with hub.running():
        before, a, b = await half_way(hub)
        await hub.patch(Module, "base", {"spec": {"policyRef": {"name": "missing"}, "rollout": None}})
        module = await hub.says(Module, "base", "no RolloutPolicy", "Stalled")
        assert module.status.admitted == before.status.admitted
        assert module.status.target == before.status.target
        a.states.clear()
        await a.delivers()
        await hub.put_module("other", rollout={"maxConcurrent": 2})
        await a.delivers_until(lambda it: len(it.status.syncs) == 2)
        await hub.sees_entries_of("b", ["other"])  # by then, that `a` has arrived is known
        await hub.patch(Module, "base", {"spec": {"policyRef": None, "rollout": {"maxConcurrent": 1}}})
        await b.delivers_until(lambda it: [each.name for each in it.spec.syncs] == ["base", "other"])


async def test_a_policy_that_is_made_later_is_followed(hub: Hub) -> None:
    """The Module that waits for it goes on by itself."""
    await hub.put_source()
    await hub.put_module(policyRef={"name": "slow"})
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await hub.says(Module, "base", f"no RolloutPolicy {hub.namespace}/slow", "Stalled")
        await hub.put(RolloutPolicy, "slow", {"maxConcurrent": 1})
        await cluster.delivers_until(lambda it: it.spec.syncs)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "yaml": ({"base/one.yaml": "a: [1,\n"}, "base/one.yaml"),
    "folder": ({"base/one.yaml": None, "else/one.yaml": config_map("one")}, "base"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_content_that_makes_no_sense_is_told_and_goes_nowhere(hub: Hub, what: str) -> None:
    """The condition names the file or folder; the target stays, and so does what clusters run; the mended moves on."""
    files, text = BROKEN[what]
    await hub.put_source()
    await hub.put_module()
    async with hub.running():
        cluster = await Downstream.ready(hub)
        proxy = await cluster.delivers_until(lambda it: it.status.syncs)
        before = await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")
        hub.repository.commit(files)
        module = await hub.says(Module, "base", text, "Stalled")
        assert module.status.target == before.status.target
        assert module.status.summary.succeeded == 1
        assert (await cluster.entries())["base"] == proxy.spec.syncs[0]
        commit = hub.repository.commit({"base/one.yaml": config_map("one", v="2")})
        module = await hub.sees(Module, "base", lambda it: commit in it.status.revision)
        await cluster.runs(base=module.status.target)
