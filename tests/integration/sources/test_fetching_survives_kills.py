"""A process that fetches is killed at random moments; the next one fetches what is there, from whatever was left.

One round is a handful of kills.
"""

import asyncio
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from starling.sources import ArtifactStore, FetchSettings, GitSource, GitSources, Ref
from tests.integration.sources.repositories import Repository
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds

KILLS = 5
REPOSITORY = str(Path(__file__).parents[3])

WORK = """
import asyncio, sys
from pathlib import Path
from tests.integration.sources.test_fetching_survives_kills import fetch
print("ready", flush=True)
asyncio.run(fetch(Path(sys.argv[1]), sys.argv[2]))
"""


async def fetch(folder: Path, url: str) -> dict[str, str]:
    """Fetch the main branch and give its files."""
    store = ArtifactStore(folder / "store")
    sources = GitSources(folder / "sources", store, FetchSettings(allow_file=True))
    artifact = await sources.fetch(GitSource(url, Ref(branch="main")))
    root = await store.checkout(artifact.digest)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_whatever_is_left_the_next_is_right(tmp_path: Path, number: int) -> None:
    """In the middle of the first fetch, or of a change; what a finished fetch took is the measure for the moment."""
    choose = random.Random(number)
    repository = Repository(tmp_path / "repositories" / "app.git")
    files = {f"d{each % 7}/{each}.yaml": f"{each}\n" * 200 for each in range(400)}
    repository.commit(files)
    for kill in range(KILLS):
        folder = tmp_path / f"state{kill // 3}"  # begun anew now and then
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORK, str(folder), repository.url, cwd=REPOSITORY, stdout=subprocess.PIPE
        )
        assert worker.stdout is not None
        await worker.stdout.readline()
        try:
            await asyncio.wait_for(worker.wait(), choose.uniform(0.0, 1.0))
        except TimeoutError:
            with suppress(ProcessLookupError):  # it ended in this very moment
                worker.kill()
            await worker.wait()
        assert await fetch(folder, repository.url) == files
        changed = {f"d{choose.randrange(7)}/new{kill}.yaml": "new\n", f"d{kill}/{kill}.yaml": "changed\n"}
        files |= changed
        repository.commit(changed)
