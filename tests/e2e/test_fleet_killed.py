"""Controller and agents killed at any moment of a rollout: the end is right, and bounds are never broken."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from tests.e2e.fleets import Fleet, Repository, audit, config_map, environ, fleet_of, in_motion, module, source
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds

CLUSTERS = ("push-1", "pull-1", "pull-2")
MOST = 1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """A hub with an audit log, and clusters of both modes."""
    with fleet_of(tmp_path_factory.mktemp("killed"), {**environ(), **environment}) as fleet:
        fleet.up("hub", audit=True)
        fleet.up(*CLUSTERS)
        fleet.starling("install", "--kubeconfig", fleet.config("hub"))
        fleet.controller()
        for name in CLUSTERS:
            join = fleet.add if name.startswith("push") else fleet.enrol
            join(name, "fleet=all")
            fleet.agent(name)
        yield fleet


@pytest.mark.parametrize("number", range(max(2, ROUNDS)))
async def test_killed_at_any_moment(fleet: Fleet, repository: Repository, number: int) -> None:
    """A version is rolled out, at times overtaken by another, while processes are killed and started again."""
    choose = random.Random(number)
    wanted = module("killed", "app", rollout={"maxConcurrent": MOST, "timeout": "5m"})
    repository.commit({"app/it.yaml": config_map("killed", version=f"before {number}")})
    await fleet.apply("hub", source("fleet", repository.url), wanted)
    first = {name: {"version": f"before {number}"} for name in CLUSTERS}
    await fleet.eventually(lambda: fleet.has("killed", first), "the version to begin with")
    await fleet.eventually(lambda: fleet.rolled_out("killed"), "the state to begin with")
    before = len(audit(fleet.clusters["hub"]))
    version = f"{number}-{choose.random()}"
    repository.commit({"app/it.yaml": config_map("killed", version=version)})
    for kill in range(4):
        await asyncio.sleep(choose.uniform(0.0, 4.0))  # the moment, not a wait for anything
        await asyncio.to_thread(kill_and_start, fleet, choose)
        if kill == 1 and choose.random() < 0.5:
            version = f"{version}-and-another"
            repository.commit({"app/it.yaml": config_map("killed", version=version)})
    everywhere = {name: {"version": version} for name in CLUSTERS}
    await fleet.eventually(lambda: fleet.has("killed", everywhere), f"version {version} everywhere")
    await fleet.eventually(lambda: fleet.rolled_out("killed"), "the rollout's end")
    assert in_motion(audit(fleet.clusters["hub"])[before:], "killed") == MOST


def kill_and_start(fleet: Fleet, choose: random.Random) -> None:
    """End the controller or an agent the hard way, and start it again."""
    victim = choose.choice(["controller", *CLUSTERS])
    if victim == "controller":
        fleet.services["controller"].kill()
        fleet.controller()
    else:
        fleet.services[f"agent-{victim}"].kill()
        fleet.agent(victim)
