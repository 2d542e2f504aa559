"""What clusters do when their hub, git, or their own agent is away, and what a hub does that comes back, or is new."""

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from tests.e2e.fleets import Fleet, Repository, audit, config_map, environ, fleet_of, module, source

CLUSTERS = ("push", "pull")
HEARTBEAT = ("--heartbeat", "10s")
"""An API server that was started again on a busy machine takes up to twenty seconds until it lets agents in."""
AWAY = 32.0
"""Seconds for which the hub is away: more than three heartbeats."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """A hub, a push and a pull cluster, all with audit logs."""
    with fleet_of(tmp_path_factory.mktemp("survivors"), {**environ(), **environment}) as fleet:
        fleet.up("hub", *CLUSTERS, audit=True)
        enrol_all(fleet)
        for name in CLUSTERS:
            fleet.agent(name, *HEARTBEAT)
        yield fleet


def enrol_all(fleet: Fleet) -> None:
    """Make a hub of the API server called so, from nothing."""
    fleet.starling("install", "--kubeconfig", fleet.config("hub"))
    fleet.controller()
    fleet.add("push", "kind=push")
    fleet.enrol("pull", "kind=pull")


async def roll_out(fleet: Fleet, repository: Repository, *names: str) -> None:
    """Have Modules, each of its own folder, on both clusters."""
    repository.commit({f"{name}/it.yaml": config_map(name, version="1") for name in names})
    await load(fleet, repository, *names)
    wanted = {cluster: {"version": "1"} for cluster in CLUSTERS}
    for name in names:
        await fleet.eventually(partial(fleet.has, name, wanted), name)
        await fleet.eventually(partial(fleet.rolled_out, name), f"the end of {name}'s rollout")


async def load(fleet: Fleet, repository: Repository, *names: str) -> None:
    """Have the hub hold the Source and these Modules."""
    await fleet.apply("hub", source("fleet", repository.url), *(module(name, name) for name in names))


async def drift(fleet: Fleet, name: str) -> None:
    """Have someone change an object on both clusters, and wait until that is undone."""
    for cluster in CLUSTERS:
        await fleet.patch(cluster, "ConfigMap", name, {"data": {"version": "hacked"}}, "default")
    wanted = {cluster: {"version": "1"} for cluster in CLUSTERS}
    await fleet.eventually(lambda: fleet.has(name, wanted), "drift being put right")


def phases(fleet: Fleet, since: int) -> set[tuple[str, str]]:
    """The phases that Clusters were given since then, and why, by the hub's log."""
    found = set()
    for event in audit(fleet.clusters["hub"])[since:]:
        about = event.get("objectRef", {})
        if about.get("resource") == "clusters" and about.get("subresource") == "status":
            status = (event.get("requestObject") or {}).get("status", {})
            why = next((each["message"] for each in status.get("conditions", ()) if each["type"] == "Ready"), "")
            found.add((status.get("phase", "Ready"), why))
    return found


def deleted(fleet: Fleet, cluster: str, since: int) -> list[str]:
    """What was deleted on a cluster since then."""
    return [
        event["requestURI"]
        for event in audit(fleet.clusters[cluster])[since:]
        if event["verb"] in ("delete", "deletecollection")
    ]


async def test_a_hub_that_was_away_finds_everything_as_it_was(fleet: Fleet, repository: Repository) -> None:
    """While its API server is away drift is undone; when it is back nobody is taken for dead, nothing done twice."""
    await roll_out(fleet, repository, "away")
    since = len(audit(fleet.clusters["hub"]))
    await asyncio.to_thread(kill_api_server, fleet)
    await drift(fleet, "away")
    versions = [await version_of(fleet, name, "away") for name in CLUSTERS]
    await asyncio.sleep(AWAY)  # not for something to happen: this is how long the hub is away
    await asyncio.to_thread(fleet.up, "hub")
    repository.commit({"back/it.yaml": config_map("back", version="1")})
    await load(fleet, repository, "back")
    await fleet.eventually(lambda: fleet.rolled_out("back"), "a rollout by the hub that is back")
    await fleet.eventually(lambda: fleet.rolled_out("away"), "the status of what was there before")
    assert [each for each in phases(fleet, since) if each[0] != "Ready"] == []
    assert [await version_of(fleet, name, "away") for name in CLUSTERS] == versions


async def test_without_hub_and_git_a_new_agent_goes_on_from_what_was_stored(
    fleet: Fleet, repository: Repository
) -> None:
    """Hub and git are gone, agents are started anew with nothing on their disks: drift is still undone."""
    await roll_out(fleet, repository, "stored")
    await asyncio.to_thread(kill_api_server, fleet)
    git = fleet.services["git"]
    address = git.said.split()[0]
    await asyncio.to_thread(git.kill)
    for name in CLUSTERS:
        await asyncio.to_thread(fleet.services[f"agent-{name}"].kill)
        folder = str(fleet.folder / f"data/new-{name}")
        await asyncio.to_thread(fleet.agent, name, "--data", folder, *HEARTBEAT)
    try:
        await drift(fleet, "stored")
    finally:
        await asyncio.to_thread(fleet.git_server, port=int(address.rpartition(":")[2]))
        await asyncio.to_thread(fleet.up, "hub")
    await fleet.eventually(lambda: fleet.rolled_out("stored"), "all being well again")


async def test_a_hub_built_anew_adopts_everything_and_touches_nothing(fleet: Fleet, repository: Repository) -> None:
    """The hub's etcd is lost; a new hub, its Modules loaded one by one, deletes nothing and restarts nothing."""
    names = [f"adopted-{number}" for number in range(4)]
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "adopted", "namespace": "default"},
        "spec": {"schedule": "@yearly", "jobTemplate": {"spec": {"template": {"spec": POD}}}},
    }
    repository.commit({f"{names[0]}/job.yaml": yaml.safe_dump(job)})
    await roll_out(fleet, repository, *names)
    before = {cluster: [await identity(fleet, cluster, name) for name in names] for cluster in CLUSTERS}
    logs = {cluster: len(audit(fleet.clusters[cluster])) for cluster in CLUSTERS}

    await asyncio.to_thread(fleet.services["controller"].kill)
    await fleet.closed()
    await asyncio.to_thread(fleet.lose, "hub")
    await asyncio.to_thread(fleet.up, "hub", audit=True)
    await asyncio.to_thread(enrol_all, fleet)
    for name in names:
        await load(fleet, repository, name)
        await fleet.eventually(partial(fleet.rolled_out, name), f"{name} being managed again")

    assert {cluster: deleted(fleet, cluster, logs[cluster]) for cluster in CLUSTERS} == {name: [] for name in CLUSTERS}
    after = {cluster: [await identity(fleet, cluster, name) for name in names] for cluster in CLUSTERS}
    assert after == before
    await drift(fleet, names[0])
    repository.commit({f"{names[1]}/it.yaml": config_map(names[1], version="2")})
    wanted = {cluster: {"version": "2"} for cluster in CLUSTERS}
    await fleet.eventually(lambda: fleet.has(names[1], wanted), "the new hub rolling something out")


POD = {"restartPolicy": "Never", "containers": [{"name": "it", "image": "example.com/it:1"}]}


async def identity(fleet: Fleet, cluster: str, name: str) -> Any:
    """An object's uid and version, which any write would change."""
    found = [await fleet.get(cluster, "ConfigMap", name, "default")]
    if name == "adopted-0":
        found.append(await fleet.get(cluster, "CronJob", "adopted", "default"))
    return [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]


async def version_of(fleet: Fleet, cluster: str, name: str) -> str:
    """The resourceVersion of an object."""
    return str((await identity(fleet, cluster, name))[0][1])


def kill_api_server(fleet: Fleet) -> None:
    """End the hub's API server the hard way."""
    os.kill(fleet.clusters["hub"].pids()["kube-apiserver"], signal.SIGKILL)
