"""Other users' folders and processes are none of our business, even if we are root."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from starling.local.cluster import LocalCluster, read_cluster
from starling.local.clusters import is_absent_or_empty
from starling.local.processes import MARK, find
from tests.integration.local.conftest import processes_with
from tests.waiting import until

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be, or make things for, somebody else")


@contextmanager
def nobody() -> Iterator[None]:
    """Act as a user who owns nothing."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def saved(folder: Path) -> LocalCluster:
    """Give a cluster whose files are written, and that doesn't run."""
    cluster = LocalCluster("hub", folder / "hub", 20000, workloads=False)
    cluster.save()
    return cluster


@only_root
def test_a_folder_that_cannot_be_read_is_nobodys_cluster(tmp_path: Path) -> None:
    """Whoever may not look into a cluster's folder finds no cluster there, and no traceback."""
    cluster = saved(tmp_path)
    assert read_cluster(cluster.folder) == cluster
    with nobody():
        assert read_cluster(cluster.folder) is None
        assert not is_absent_or_empty(cluster.folder)


@only_root
def test_another_users_cluster_is_not_ours(tmp_path: Path) -> None:
    """Root doesn't take another user's cluster for its own."""
    cluster = saved(tmp_path)
    os.chown(cluster.folder, NOBODY, NOBODY)
    assert read_cluster(cluster.folder) is None


@only_root
async def test_another_users_process_is_not_ours(tmp_path: Path) -> None:
    """Whoever marks a process of his as ours doesn't get root to end it, or to take it for a component."""
    environment = {MARK: f"{tmp_path}:etcd", "PATH": os.environ["PATH"]}
    sleep = ["sleep", "600"]
    ours = await asyncio.create_subprocess_exec(*sleep, env=environment)
    his = await asyncio.create_subprocess_exec(*sleep, env=environment, user=NOBODY)
    try:
        await until(lambda: len(processes_with(f"{MARK}={tmp_path}:etcd")) == 2)
        assert [process.pid for process in find(tmp_path)] == [ours.pid]
    finally:
        for process in (ours, his):
            process.kill()
            await process.wait()
