"""A hub with two push and two pull clusters: git push to objects on all of them, in bounds."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.fleets import (
    PLATFORM,
    Fleet,
    Repository,
    audit,
    config_map,
    environ,
    fleet_of,
    in_motion,
    module,
    source,
)

CLUSTERS = ("push-1", "push-2", "pull-1", "pull-2")
EU = ("push-1", "pull-1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """The fleet, with its clusters enrolled and nothing on them."""
    with fleet_of(tmp_path_factory.mktemp("fleet"), {**environ(), **environment}) as fleet:
        fleet.up("hub", audit=True)
        fleet.up(*CLUSTERS)
        fleet.starling("install", "--kubeconfig", fleet.config("hub"))
        fleet.controller()
        for name in CLUSTERS:
            join = fleet.add if name.startswith("push") else fleet.enrol
            join(name, f"region={'eu' if name in EU else 'us'}")
            fleet.agent(name)
        yield fleet


BINDINGS = [{"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}]


def region(cluster: str) -> str:
    """Where a cluster is."""
    return "eu" if cluster in EU else "us"


def manifest(name: str, version: str) -> str:
    """A ConfigMap with values of each cluster's own."""
    return config_map(name, version=version, cluster="${CLUSTER_NAME}", region="${REGION}")


def expected(version: str, *clusters: str) -> dict[str, dict[str, str]]:
    """What it holds on each cluster."""
    return {name: {"version": version, "cluster": name, "region": region(name)} for name in clusters or CLUSTERS}


async def roll_out(fleet: Fleet, repository: Repository, name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    """Have a Module of its own folder on the clusters it selects, and wait until it is there."""
    repository.commit({f"{name}/it.yaml": manifest(name, version)})
    wanted = module(name, name, sync={"bindings": BINDINGS}, **more)
    await fleet.apply("hub", source("fleet", repository.url), wanted)
    selected = [each for each in CLUSTERS if not more.get("selector") or more["selector"] == {"region": region(each)}]
    await fleet.eventually(lambda: fleet.has(name, expected(version, *selected)), f"version {version} of {name}")
    found: dict[str, Any] = await fleet.eventually(lambda: fleet.rolled_out(name), f"the end of {name}'s rollout")
    return found


async def test_modules_go_where_labels_say(fleet: Fleet, repository: Repository) -> None:
    """One Module to all clusters, with values of each cluster's own, and one to those of a region."""
    await roll_out(fleet, repository, "everywhere")
    await roll_out(fleet, repository, "regional", selector={"region": "eu"})
    found = {name: await fleet.data(name, "regional") for name in CLUSTERS}
    assert found == {name: expected("1")[name] if name in EU else None for name in CLUSTERS}


async def test_a_push_to_git_reaches_all_in_bounds(fleet: Fleet, repository: Repository) -> None:
    """A new version goes to one cluster after the other, never to two at a time."""
    await roll_out(fleet, repository, "bounded", rollout={"maxConcurrent": 1})
    before = len(audit(fleet.clusters["hub"]))
    repository.commit({"bounded/it.yaml": manifest("bounded", "2")})
    await fleet.eventually(lambda: fleet.has("bounded", expected("2")), "version 2 everywhere")
    rolled_out = await fleet.eventually(lambda: fleet.rolled_out("bounded"), "the rollout's end")
    assert rolled_out["status"]["summary"]["ready"] == "4/4"
    assert in_motion(audit(fleet.clusters["hub"])[before:], "bounded") == 1


async def test_a_commit_that_changes_nothing_moves_nothing(fleet: Fleet, repository: Repository) -> None:
    """The Module notes the commit; no cluster's entry is written."""
    await roll_out(fleet, repository, "still")
    before = [await entry(fleet, name, "still") for name in CLUSTERS]
    commit = repository.commit({"NEWS.md": "nothing that is rendered"})

    async def noted() -> bool:
        found = await fleet.get("hub", "Module", "still")
        return bool(found["status"]["sourceRevision"].endswith(commit))

    await fleet.eventually(noted, "the commit being noted")
    assert [await entry(fleet, name, "still") for name in CLUSTERS] == before


async def test_a_private_repository_works_in_both_modes(fleet: Fleet) -> None:
    """Credentials go along to those clusters that need them, and to no other."""
    url = await asyncio.to_thread(fleet.git_server, "reader", "s3cret-word")
    private = Repository(fleet.folder / "private" / "secrets", f"{url}/secrets/.git")
    private.commit({"app.yaml": config_map("private", it="works")})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "git-creds", "namespace": PLATFORM},
        "stringData": {"username": "reader", "password": "s3cret-word"},
    }
    await fleet.apply(
        "hub",
        secret,
        source("private", private.url, secretRef={"name": "git-creds"}),
        module("private", ".", selector={"region": "eu"}, of="private"),
    )
    wanted = {name: {"it": "works"} for name in EU}
    await fleet.eventually(lambda: fleet.has("private", wanted), "what is private")
    copies = [await fleet.get("hub", "Secret", f"starling-cluster-{name}-credentials") for name in CLUSTERS]
    assert [copy is not None for copy in copies] == [name in EU for name in CLUSTERS]
    assert all("s3cret-word" not in service.said for service in fleet.services.values())


async def test_drift_is_undone(fleet: Fleet, repository: Repository) -> None:
    """What someone changes on a cluster is put right there."""
    await roll_out(fleet, repository, "drifting")
    for name in ("push-2", "pull-2"):
        await fleet.patch(name, "ConfigMap", "drifting", {"data": {"version": "hacked"}}, "default")
    await fleet.eventually(lambda: fleet.has("drifting", expected("1")), "drift put right")


async def test_a_cluster_that_is_relabelled_has_its_new_values_at_once(fleet: Fleet, repository: Repository) -> None:
    """A value of one cluster's own changes there only."""
    await roll_out(fleet, repository, "labelled")
    await fleet.patch("hub", "Cluster", "push-2", {"metadata": {"labels": {"region": "asia"}}})
    try:
        wanted = expected("1") | {"push-2": {"version": "1", "cluster": "push-2", "region": "asia"}}
        await fleet.eventually(lambda: fleet.has("labelled", wanted), "another region")
    finally:
        await fleet.patch("hub", "Cluster", "push-2", {"metadata": {"labels": {"region": "us"}}})


async def test_a_module_that_is_deleted_goes_from_all_clusters(fleet: Fleet, repository: Repository) -> None:
    """Its objects go, then it goes itself."""
    await roll_out(fleet, repository, "deleted")
    await fleet.delete("hub", "Module", "deleted")
    await fleet.eventually(lambda: gone(fleet, "Module", "deleted"), "the Module being gone")
    assert [await fleet.data(name, "deleted") for name in CLUSTERS] == [None] * 4


async def test_leaving_many_clusters_waits_for_confirmation(fleet: Fleet, repository: Repository) -> None:
    """A selector that loses two of four clusters removes nothing until someone confirms it."""
    await roll_out(fleet, repository, "leaving")
    await fleet.patch("hub", "Module", "leaving", {"spec": {"selector": {"matchLabels": {"region": "eu"}}}})

    async def question() -> str:
        found = await fleet.get("hub", "Module", "leaving")
        message = next(each["message"] for each in found["status"]["conditions"] if each["type"] == "Ready")
        return str(message).rpartition("starling.dev/confirm: ")[2] if "starling.dev/confirm" in message else ""

    confirm = await fleet.eventually(question, "the question")
    assert await fleet.has("leaving", expected("1"))
    await fleet.patch("hub", "Module", "leaving", {"metadata": {"annotations": {"starling.dev/confirm": confirm}}})

    async def left() -> bool:
        there = [await fleet.data(name, "leaving") is not None for name in CLUSTERS]
        return there == [name in EU for name in CLUSTERS]

    await fleet.eventually(left, "two clusters being left")


@pytest.mark.parametrize("cluster", ["push-1", "pull-1"])
async def test_a_cluster_that_is_removed_keeps_what_runs_there(
    fleet: Fleet, repository: Repository, cluster: str
) -> None:
    """Its objects stay, without our marks; and when it comes back, they are the fleet's again."""
    name = f"kept-{cluster}"
    await roll_out(fleet, repository, name)
    before = await fleet.get(cluster, "ConfigMap", name, "default")
    await fleet.delete("hub", "Cluster", cluster)
    await fleet.eventually(lambda: gone(fleet, "Cluster", cluster), "the Cluster being gone")
    after = await fleet.get(cluster, "ConfigMap", name, "default")
    assert (after["metadata"]["uid"], after["data"]) == (before["metadata"]["uid"], before["data"])
    assert "starling.dev/sync" not in after["metadata"].get("labels", {})
    join = fleet.add if cluster.startswith("push") else fleet.enrol
    await asyncio.to_thread(join, cluster, f"region={region(cluster)}")

    async def ours() -> bool:
        found = await fleet.get(cluster, "ConfigMap", name, "default")
        return "starling.dev/sync" in found["metadata"].get("labels", {})

    await fleet.eventually(ours, "the cluster being the fleet's again")
    assert (await fleet.get(cluster, "ConfigMap", name, "default"))["metadata"]["uid"] == before["metadata"]["uid"]


async def entry(fleet: Fleet, cluster: str, name: str) -> Any:
    """A Module's entry on a cluster."""
    found = await fleet.get("hub", "ProxyAssemblage", cluster)
    return next(each for each in found["spec"]["syncs"] if each["name"] == name)


async def gone(fleet: Fleet, kind: str, name: str) -> bool:
    """Whether there is no such object on the hub."""
    return await fleet.get("hub", kind, name) is None
