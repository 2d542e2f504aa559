"""SyncGroups and Syncs with a cluster: synced directly from the hub to clusters that it connects to."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.e2e.fleets import PLATFORM, Fleet, Repository, config_map, environ, fleet_of, ours, source

CLUSTERS = ("push-1", "push-2", "pull-1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """A hub with an agent of its own, two clusters that it connects to, and one that dials in."""
    with fleet_of(tmp_path_factory.mktemp("fleet"), {**environ(), **environment}) as fleet:
        fleet.up("hub", *CLUSTERS)
        fleet.starling("install", "--kubeconfig", fleet.config("hub"), "--no-controller")
        fleet.controller()
        fleet.agent("hub")
        for name in CLUSTERS:
            join = fleet.add if name.startswith("push") else fleet.enrol
            join(name, f"name={name}")
            fleet.agent(name)
        yield fleet


def group(name: str, *parts: str, selector: Any = None, **more: Any) -> dict[str, Any]:
    """A SyncGroup with parts of its own folders, for every cluster."""
    syncs = [
        {
            "name": part,
            "source": {"name": "fleet"},
            "path": f"{name}/{part}",
            "package": {"plain": {}},
            "targetNamespace": "default",
        }
        for part in parts
    ]
    return ours("SyncGroup", name, {"selector": selector or {}, "syncs": syncs, **more})


def files(name: str, version: str, *parts: str) -> dict[str, str | None]:
    """What its folders hold: a ConfigMap for each part."""
    return {
        f"{name}/{part}/it.yaml": config_map(f"{name}-{part}", version=version, cluster="${CLUSTER_NAME}")
        for part in parts
    }


def expected(version: str, *clusters: str) -> dict[str, dict[str, str]]:
    """What one of these holds on each cluster."""
    return {name: {"version": version, "cluster": name} for name in clusters or CLUSTERS}


async def is_through(fleet: Fleet, name: str) -> bool:
    """Whether a group's target is everywhere."""
    found = await fleet.get("hub", "SyncGroup", name)
    status = found.get("status", {})
    return bool(status.get("phase") == "Succeeded" and status.get("target") == status.get("ended"))


async def roll_out(fleet: Fleet, repository: Repository, name: str, *parts: str, **more: Any) -> None:
    """Have a group's first version on all clusters."""
    repository.commit(files(name, "1", *parts))
    await fleet.apply("hub", source("fleet", repository.url), group(name, *parts, **more))
    for part in parts:
        await fleet.eventually(partial(fleet.has, f"{name}-{part}", expected("1")), f"{name}-{part}")
    await fleet.eventually(lambda: is_through(fleet, name), f"the end of {name}'s rollout")


async def test_all_parts_reach_all_clusters_and_follow_git(fleet: Fleet, repository: Repository) -> None:
    """Push clusters by Syncs on the hub, pull clusters by their ProxyAssemblage; a part more and one less follow."""
    await roll_out(fleet, repository, "layer", "one", "two", rollout={"maxConcurrent": 1})
    assert (await fleet.get("hub", "Sync", "layer.one.push-1"))["spec"]["cluster"] == {"name": "push-1"}
    assert await fleet.get("hub", "Sync", "layer.one.pull-1") is None
    told = json.loads(fleet.starling("get", "--kubeconfig", fleet.config("hub"), "-o", "json"))
    there = {each["name"]: [(its["name"], its["state"]) for its in each["syncGroups"]] for each in told["clusters"]}
    assert there == {name: [("syncgroup/layer", "ok")] for name in CLUSTERS}
    told = fleet.starling("rollout", "status", "syncgroup/layer", "--kubeconfig", fleet.config("hub"))
    assert f"{len(CLUSTERS)}: {len(CLUSTERS)} ok" in told
    repository.commit(files("layer", "2", "one", "three"))
    await fleet.apply("hub", group("layer", "one", "three", rollout={"maxConcurrent": 1}))
    for part in ("one", "three"):
        await fleet.eventually(partial(fleet.has, f"layer-{part}", expected("2")), f"version 2 of {part}")

    async def gone() -> bool:
        return [await fleet.data(name, "layer-two") for name in CLUSTERS] == [None] * len(CLUSTERS)

    await fleet.eventually(gone, "the part that is no more being pruned")
    await fleet.eventually(lambda: is_through(fleet, "layer"), "the end of the second rollout")


async def test_clusters_come_and_go_by_label(fleet: Fleet, repository: Repository) -> None:
    """A cluster that loses the label loses what it had; one that gets it gets everything."""
    repository.commit(files("some", "1", "it"))
    selector = {"matchExpressions": [{"key": "some", "operator": "Exists"}]}
    await fleet.apply("hub", source("fleet", repository.url), group("some", "it", selector=selector))
    await fleet.patch("hub", "Cluster", "push-1", {"metadata": {"labels": {"some": "yes"}}})
    await fleet.eventually(lambda: fleet.has("some-it", expected("1", "push-1")), "it being on push-1")
    assert await fleet.data("push-2", "some-it") is None
    await fleet.patch("hub", "Cluster", "push-1", {"metadata": {"labels": {"some": None}}})

    async def gone() -> bool:
        sync = await fleet.get("hub", "Sync", "some.it.push-1")
        return sync is None and await fleet.data("push-1", "some-it") is None

    await fleet.eventually(gone, "it being taken off push-1")


async def test_removing_a_group_takes_along_what_it_had(fleet: Fleet, repository: Repository) -> None:
    """Its finalizer goes when all is pruned, on clusters of both kinds."""
    await roll_out(fleet, repository, "brief", "it")
    await fleet.delete("hub", "SyncGroup", "brief")

    async def gone() -> bool:
        left = [await fleet.data(name, "brief-it") for name in CLUSTERS]
        return left == [None] * len(CLUSTERS) and await fleet.get("hub", "SyncGroup", "brief") is None

    await fleet.eventually(gone, "the group and all that it had being gone")


async def test_a_group_without_a_selector_is_for_the_hub(fleet: Fleet, repository: Repository) -> None:
    """The hub's own agent keeps it, and drift there is put right."""
    repository.commit({"own/it.yaml": config_map("own-it", version="1")})
    wanted = group("own", "it")
    del wanted["spec"]["selector"]
    wanted["spec"]["syncs"][0]["path"] = "own"
    await fleet.apply("hub", source("fleet", repository.url), wanted)
    await fleet.eventually(lambda: fleet.has("own-it", {"hub": {"version": "1"}}), "it being on the hub")
    await fleet.eventually(lambda: is_through(fleet, "own"), "the group saying so")
    await fleet.patch("hub", "ConfigMap", "own-it", {"data": {"version": "mine"}}, "default")
    await fleet.eventually(lambda: fleet.has("own-it", {"hub": {"version": "1"}}), "drift on the hub put right")


async def test_at_rest_nothing_is_written(fleet: Fleet, repository: Repository) -> None:
    """Once all is there, Syncs change no more; the group only notes commits that are no concern of its own."""
    await roll_out(fleet, repository, "still", "it")

    async def versions() -> list[Any]:
        syncs = [await fleet.get("hub", "Sync", f"still.it.{name}") for name in ("push-1", "push-2")]
        status = (await fleet.get("hub", "SyncGroup", "still"))["status"]
        return [*(each["metadata"]["resourceVersion"] for each in syncs), status["revision"], status["admission"]]

    before = await versions()
    await roll_out(fleet, repository, "other", "it")
    assert await versions() == before
    assert (await fleet.get("hub", "SyncGroup", "still", PLATFORM))["status"]["summary"]["ready"] == "3/3"
