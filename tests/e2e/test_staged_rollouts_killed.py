"""The controller killed at any moment of a staged rollout, and one of two that leads: stages and bounds are kept."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.fleets import PLATFORM, Fleet, Repository, config_map, environ
from tests.e2e.staged import (
    BAKE,
    CANARIES,
    EU,
    STAGES,
    comes_to,
    everywhere,
    policy,
    push,
    rollout,
    staged_fleet,
    start,
    trail,
    wait,
)
from tests.rounds import ROUNDS

pytestmark = [pytest.mark.rounds, pytest.mark.timeout(900)]

REPLICAS = ("controller-1", "controller-2")
LEASE = "starling-controller"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """The fleet, with its clusters enrolled and nothing on them."""
    with staged_fleet(tmp_path_factory.mktemp("staged"), {**environ(), **environment}) as fleet:
        yield fleet


@pytest.mark.parametrize("number", range(max(2, ROUNDS)))
async def test_killed_at_any_moment_of_a_staged_rollout(fleet: Fleet, repository: Repository, number: int) -> None:
    """A version goes through stages, at times overtaken by another, while the controller is killed again and again."""
    choose = random.Random(number)
    name = f"killed-{number}"
    first = await start(fleet, repository, careful(name))
    version, commit = "2", push(repository, name, config_map(name, version="2"))
    for kill in range(4):
        await asyncio.sleep(choose.uniform(0.0, 4.0))  # the moment, not a wait for anything
        await asyncio.to_thread(kill_and_start, fleet)
        if kill == 1 and choose.random() < 0.5:
            version, commit = "3", push(repository, name, config_map(name, version="3"))
    await comes_to(fleet, name, "Waiting", commit=commit, says="stage eu waits for approval")
    await rollout(fleet, "approve", name, "--timeout", "0")
    for _ in range(2):
        await asyncio.sleep(choose.uniform(0.0, 2.0))  # as above
        await asyncio.to_thread(kill_and_start, fleet)
    code, said = await wait(fleet, name, commit)
    assert (code, await fleet.has(name, everywhere(version))) == (0, True), said
    await kept_bounds(fleet, name, first["target"])


async def test_the_leader_of_two_is_killed_and_another_stalls(fleet: Fleet, repository: Repository) -> None:
    """Whoever is next goes on, and one that wakes up as if it led still does nothing that the other wouldn't."""
    choose = random.Random(0)
    await asyncio.to_thread(fleet.services["controller"].stop)
    try:
        for name in REPLICAS:
            await asyncio.to_thread(fleet.controller, "--leader-election", name=name)
        first = await start(fleet, repository, careful("led"))
        commit = push(repository, "led", config_map("led", version="2"))
        await asyncio.sleep(choose.uniform(0.0, 3.0))  # the moment, not a wait for anything
        killed = await leader(fleet)
        await asyncio.to_thread(fleet.services[killed].kill)
        await comes_to(fleet, "led", "Waiting", commit=commit, says="stage eu waits for approval")
        await asyncio.to_thread(fleet.controller, "--leader-election", name=killed)

        stalled = fleet.services[await leader(fleet)].process
        await rollout(fleet, "approve", "led", "--timeout", "0")
        await asyncio.sleep(choose.uniform(0.0, 1.0))  # as above
        os.kill(stalled.pid, signal.SIGSTOP)
        try:
            await fleet.eventually(partial(leads, fleet, killed), "the other one leading")
            await asyncio.sleep(choose.uniform(0.0, 2.0))  # as above
        finally:
            os.kill(stalled.pid, signal.SIGCONT)
        code, said = await wait(fleet, "led", commit)
        assert (code, await fleet.has("led", everywhere("2"))) == (0, True), said
        await kept_bounds(fleet, "led", first["target"])
        assert stalled.poll() is None
    finally:
        for name in REPLICAS:
            await asyncio.to_thread(fleet.services[name].stop)
        await asyncio.to_thread(fleet.controller)


def careful(name: str) -> dict[str, object]:
    """A policy by which no stage may have two clusters on their way."""
    return policy(name, eu={"approval": "Manual"}, maxConcurrent=1)


async def kept_bounds(fleet: Fleet, name: str, first: str) -> None:
    """Once it is all over: what came after the first target went stage by stage, one cluster at a time, and baked."""
    last = (await fleet.eventually(partial(fleet.rolled_out, name), "the end"))["status"]["target"]
    way = trail(fleet, name)
    targets = way.targets(first)
    assert [way.most_in_motion(stage, *targets) for stage in STAGES] == [1, 1, 1]
    assert way.out_of_turn(STAGES, *targets) == []
    assert way.between(last, CANARIES, EU) >= BAKE


def kill_and_start(fleet: Fleet) -> None:
    """End the controller the hard way, and start it again."""
    fleet.services["controller"].kill()
    fleet.controller()


async def leader(fleet: Fleet) -> str:
    """Which replica leads, once one does that runs."""

    async def there() -> str:
        for name in REPLICAS:
            if await leads(fleet, name):
                return name
        return ""

    return str(await fleet.eventually(there, "a leader"))


async def leads(fleet: Fleet, name: str) -> bool:
    """Whether a replica holds the Lease."""
    found = await fleet.get("hub", "Lease", LEASE, PLATFORM)
    holder = found["spec"].get("holderIdentity", "") if found is not None else ""
    process = fleet.services[name].process
    return f"-{process.pid}-" in holder and process.poll() is None
