"""An agent that ends at any request leaves nothing that the next one doesn't carry on, and has told no lie."""

import asyncio
import random

import pytest

from tests.integration.controllers.syncing.stage import Stage, config_map
from tests.integration.engine.traffic import Asked, Traffic
from tests.rounds import ROUNDS
from tests.waiting import until

REQUESTS = 60
"""About as many as a target takes, informers and all."""


async def live_until(stage: Stage, counted: Traffic, last: int) -> None:
    """Run an agent that ends at its n-th request, which isn't answered; or at the end of its work if that is before."""
    ended = asyncio.Event()
    asked = 0

    async def count(_: Asked) -> None:
        nonlocal asked
        asked += 1
        if asked >= last:
            ended.set()
            await asyncio.Event().wait()

    async def is_over() -> bool:
        told = await stage.assemblage()
        assert told is not None
        updating = any(each.state == "updating" for each in told.status.syncs)
        observed = told.status.observed_generation == told.metadata.generation
        return ended.is_set() or (observed and not updating)

    counted.before = count
    async with stage.agent(counted.access):
        await until(is_over)
    counted.before = None


async def check_word(stage: Stage) -> None:
    """What is said to have succeeded is in the cluster, or something newer is."""
    told = await stage.assemblage()
    assert told is not None
    for each in told.status.syncs:
        if each.state == "succeeded":
            live = await stage.live(each.name)
            assert live is not None
            assert int(live["data"]["v"]) >= int(each.target.removeprefix("t1:"))


@pytest.mark.rounds
@pytest.mark.timeout(300 + 120 * ROUNDS)
async def test_agents_end_at_any_request(stage: Stage, counted: Traffic) -> None:
    """Targets follow one another while agents come and go; none is told done before it is, and the last is reached."""
    chance = random.Random(f"ends {ROUNDS}")
    number = 8 * ROUNDS
    for at in range(number):
        names = {"web", *(("db",) if at % 3 else ())}
        files = {f"{name}/cm.yaml": config_map(name, v=str(at)) for name in ("web", "db")}
        commit = stage.repository.commit({**files, "web/more.yaml": config_map("more", v=str(at))})
        await stage.assemble(*(stage.entry(name, commit, f"t1:{at}") for name in sorted(names)))
        await live_until(stage, counted, chance.randrange(4, REQUESTS))
        await check_word(stage)
    async with stage.agent():
        last = number - 1
        await stage.states(dict.fromkeys(names, (f"t1:{last}", "succeeded")))
        for name in ("web", "more"):
            await stage.has(name, {"v": str(last)})
        await stage.has("db", {"v": str(last)} if "db" in names else None)
