"""Several processes add, check out and collect in one store and are killed at random moments; nothing half is left.

One round is a dozen kills.
"""

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from starling.sources.store import ArtifactStore, Entry
from starling.sources.trees import digest_of, read_listing
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds

KILLS = 12
TREES = 6
REPOSITORY = str(Path(__file__).parents[3])

WORK = """
import asyncio, random, sys
from pathlib import Path
from tests.integration.sources.test_store_survives_kills import work
asyncio.run(work(Path(sys.argv[1]), random.Random(int(sys.argv[2]))))
"""


def contents(number: int) -> dict[str, bytes]:
    """One of a few trees; any two have most files in common. Large ones take their time to be written."""
    small = {f"d{n % 5}/f{n}": b"%d %d\n" % (n, number if n % 40 == number else 0) * 50 for n in range(60)}
    return small | {f"large{n}": b"%d" % n * (8 << 20) for n in (number, number + 1)}


async def work(root: Path, choose: random.Random) -> None:
    """Add, check out and collect for as long as it lasts; what a checkout gives must be right each time."""
    store = ArtifactStore(root)
    print("ready", flush=True)  # noqa: T201
    while True:
        number = choose.randrange(TREES)
        wanted = contents(number)
        if choose.random() < 0.3:
            await store.collect([], older_than=choose.choice([0.0, 0.0, 1.0]))
            continue
        entries = [Entry(path, "file", store.add(content), len(content)) for path, content in wanted.items()]
        try:
            artifact = await store.put("r", entries)
            folder = await store.checkout(artifact.digest)
        except Exception as error:
            # Another's collecting with no age at all may come between adding, putting and checking out.
            if type(error).__name__ in ("Incomplete", "NotStored"):
                continue
            raise
        assert {path: (folder / path).read_bytes() for path in wanted} == wanted


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    """After each kill, a listing has all its blobs, a blob is what its name says; in the end all can be collected."""
    choose = random.Random(seed)
    root = tmp_path / "store"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), REPOSITORY]),
    }

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", WORK, str(root), str(choose.randrange(10**9))]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    running = [start() for _ in range(3)]
    try:
        for _ in range(KILLS):
            victim = running.pop(0)
            assert victim.stdout
            assert victim.stdout.readline() == "ready\n"
            await asyncio.sleep(choose.uniform(0.0, 0.3))  # the moment is what is random here
            victim.kill()
            assert victim.communicate()[1] == "", "it failed before it was killed"
            running.append(start())
            all_is_whole(root)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    await everything_works(root)


def all_is_whole(root: Path) -> None:
    """Fail unless what is there now is whole; nobody takes anything away meanwhile."""
    store = ArtifactStore(root)
    with store._pool.shared():
        for path in root.glob("listings/*"):
            content = path.read_bytes()
            assert digest_of(content) == f"sha256:{path.name}"
            assert store.lacking(entry.digest for entry in read_listing(content)) == set()
        for path in root.glob("blobs/*/*"):
            assert digest_of(path.read_bytes()) == f"sha256:{path.parent.name}{path.name}"


async def everything_works(root: Path) -> None:
    """Fail unless all trees can be had from what the killed left, and all of that collected."""
    store = ArtifactStore(root)
    for number in range(TREES):
        wanted = contents(number)
        entries = [Entry(path, "file", store.add(content), len(content)) for path, content in wanted.items()]
        folder = await asyncio.wait_for(store.checkout((await store.put("r", entries)).digest), 30)
        found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert found == wanted
    await store.collect([], older_than=0)
    left = {path.name for path in root.rglob("*") if path.is_file() or path.parent.name == "trees"}
    assert left <= {"lock", "generation"}
