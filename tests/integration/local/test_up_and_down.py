"""Clusters come up side by side, again harmlessly, and go without a trace."""

import asyncio
import stat
from pathlib import Path

import pytest
import yaml

from starling.errors import InputError
from starling.local import LocalClusters, LocalError
from tests.integration.local.conftest import KubectlOn, processes_of


async def test_two_clusters_side_by_side(clusters: LocalClusters, kubectl_on: KubectlOn) -> None:
    """Two clusters are apart, coming up again changes nothing, and one goes without the other."""
    one, two = await clusters.up("one", "two")
    assert clusters.list() == [one, two]
    assert clusters.get("one") == one
    assert set(one.pids()) == {"etcd", "kube-apiserver"}

    kubectl_on(one, "create", "configmap", "mine")
    assert "mine" in kubectl_on(one, "get", "configmaps", "-o", "name")
    assert "mine" not in kubectl_on(two, "get", "configmaps", "-o", "name")

    pids = one.pids(), two.pids()
    assert await clusters.up("one", "two") == [one, two]
    assert (one.pids(), two.pids()) == pids

    assert await clusters.down("one") == ["one"]
    assert not one.folder.exists()
    assert (one.pids(), two.pids()) == ({}, pids[1])
    assert await clusters.down() == ["two"]
    assert list(clusters.root.iterdir()) == []


async def test_two_commands_at_once_make_one_cluster(clusters: LocalClusters) -> None:
    """A second `up` of the same name waits for the first and finds its cluster; so does `down`."""
    elsewhere = LocalClusters(clusters.root)
    first, second = await asyncio.gather(clusters.up("same"), elsewhere.up("same"))
    assert first == second
    assert len(processes_of(clusters)) == 2
    await asyncio.gather(clusters.up("same"), elsewhere.down("same"))
    # Whichever came first, what is there now is whole.
    assert {frozenset(cluster.pids()) for cluster in clusters.list()} <= {frozenset({"etcd", "kube-apiserver"})}


async def test_secrets_are_the_owners_alone(clusters: LocalClusters) -> None:
    """Nobody else can look into a cluster's folder, and its kubeconfig needs no other file and skips no check.

    That the folder was there before, empty and open, makes no difference; the root's mode is its owner's business.
    """
    (clusters.root / "private").mkdir(parents=True)
    clusters.root.chmod(0o755)
    [cluster] = await clusters.up("private")
    assert stat.S_IMODE(cluster.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(clusters.root.stat().st_mode) == 0o755
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    assert set(kubeconfig["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert set(kubeconfig["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "../a", "-a", "a-", "a" * 64, "a/b", "a\n"])
async def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    """A name that isn't a DNS label is refused before anything is made."""
    with pytest.raises(InputError, match="can't be a cluster's name"):
        await LocalClusters(tmp_path / "root").up(name)
    assert not (tmp_path / "root").exists()


async def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    """Neither `up` nor `down` touches a folder that isn't a cluster's."""
    precious = tmp_path / "precious" / "file"
    precious.parent.mkdir()
    precious.write_text("keep me")
    clusters = LocalClusters(tmp_path)
    with pytest.raises(LocalError, match="isn't a cluster's folder"):
        await clusters.up("precious")
    with pytest.raises(LocalError, match="isn't a cluster's folder"):
        await clusters.down("precious")
    assert await clusters.down() == []
    assert precious.read_text() == "keep me"


FOREIGN = {
    "empty": b"",
    "not JSON": b"{",
    "not text": b'"\xff"',
    "another shape": b"[1]",
    "unmarked": b'{"port": 1, "workloads": false}',
    "another's mark": b'{"made_by": "someone", "port": 1, "workloads": false}',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
async def test_a_cluster_json_that_is_not_ours_marks_nothing(tmp_path: Path, content: bytes) -> None:
    """A file that happens to have that name makes no cluster of its folder, and `down` leaves it alone."""
    state = tmp_path / "precious" / "cluster.json"
    state.parent.mkdir()
    state.write_bytes(content)
    clusters = LocalClusters(tmp_path)
    assert clusters.list() == []
    assert await clusters.down() == []
    with pytest.raises(LocalError, match="isn't a cluster's folder"):
        await clusters.down("precious")
    assert state.read_bytes() == content


async def test_all_that_failed_is_told(tmp_path: Path) -> None:
    """When several clusters fail, the error tells of each by name, and the others are done."""
    for name in ("one", "two"):
        (tmp_path / name / "precious").mkdir(parents=True)
    (tmp_path / "three").mkdir()
    with pytest.raises(LocalError, match="2 clusters failed") as caught:
        await LocalClusters(tmp_path).down("one", "three", "two")
    for name in ("one", "two"):
        assert f"\n  {name}: {tmp_path / name} exists and isn't a cluster's folder" in caught.value.message
    assert caught.value.hint == "choose another name, or another folder with STARLING_LOCAL_DIR"
    assert not (tmp_path / "three").exists()


async def test_another_roots_clusters_are_left_alone(clusters: LocalClusters) -> None:
    """`down` of everything stops at clusters whose root lies further below."""
    [below] = await LocalClusters(clusters.root / "below").up("hub")
    try:
        assert await clusters.down() == []
        with pytest.raises(LocalError, match="isn't a cluster's folder"):
            await clusters.down("below")
        assert set(below.pids()) == {"etcd", "kube-apiserver"}
    finally:
        await LocalClusters(clusters.root / "below").down()


async def test_unknown_clusters_are_named(tmp_path: Path) -> None:
    """Asking for a cluster that isn't there says how to make it."""
    with pytest.raises(LocalError, match="there is no cluster hub") as caught:
        LocalClusters(tmp_path).get("hub")
    assert caught.value.hint == "make it with: starling local up hub"
    with pytest.raises(LocalError, match="there is no cluster hub"):
        await LocalClusters(tmp_path).down("hub")
