"""A large repository: the first fetch and one changed file, against plain git, over smart HTTP, turn by turn."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from benchmarks.rows import Row
from starling.local import GitServer, LocalCluster
from starling.sources import ArtifactStore, GitSource, GitSources, Ref

FILES = 10_000
COMMITS = 2_000
TURNS = 7


async def measure(cluster: LocalCluster) -> list[Row]:
    """Both ways in turn, so that what the machine does meanwhile falls on both; each change is another commit."""
    del cluster
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        await asyncio.to_thread(make_repository, root / "served" / "big.git")
        async with GitServer(root / "served") as server:
            url = f"{server.url}/big.git"
            first = [
                (await timed(clone(url, root / f"plain{turn}")), await ours_first(url, root / f"ours{turn}"))
                for turn in range(4)
            ]
            change = await changes(url, root)
    looked = [(look + fetch, ours) for look, fetch, ours in change]
    alone = statistics.median(ours / fetch for _, fetch, ours in change)
    return [
        _row(f"first fetch of {FILES:,} files, {COMMITS:,} commits, against git clone --depth 1", first[1:]),
        _row("one changed file, looked for and fetched, against git ls-remote and git fetch", looked),
        Row("the same against git fetch alone", f"{alone:.0%}"),
    ]


def _row(what: str, turns: list[tuple[float, float]]) -> Row:
    plain, ours = (statistics.median(way) for way in zip(*turns, strict=True))
    ratios = [mine / theirs for theirs, mine in turns]
    ratio = statistics.median(ratios)
    figure = f"{ratio:.0%} ({ours * 1000:.0f} ms, git {plain * 1000:.0f} ms; {min(ratios):.0%} to {max(ratios):.0%})"
    return Row(what, figure, "≤ 130 %", held=ratio <= 1.3)


async def ours_first(url: str, folder: Path) -> float:
    """Seconds until the artifact is there."""
    sources = GitSources(folder / "sources", ArtifactStore(folder / "store"))
    return await timed(sources.fetch(GitSource(url, Ref(branch="main"))))


async def changes(url: str, root: Path) -> list[tuple[float, float, float]]:
    """Seconds for git's look, git's fetch and for us, for one changed file after the other."""
    sources = GitSources(root / "sources", ArtifactStore(root / "store"))
    source = GitSource(url, Ref(branch="main"))
    await sources.fetch(source)
    plain = root / "plain"
    await clone(url, plain)
    turns = []
    for number in range(TURNS + 1):
        await asyncio.to_thread(change_one, root / "served" / "big.git", number)
        turns.append(
            (
                await timed(git("ls-remote", "--quiet", url, "refs/heads/main", at=plain, quiet=True)),
                await timed(git("fetch", "--quiet", at=plain)),
                await timed(sources.fetch(source)),
            )
        )
    return turns[1:]


async def timed(work: Awaitable[object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


async def clone(url: str, into: Path) -> None:
    """What people do without us."""
    await git("clone", "--quiet", "--depth", "1", url, str(into), at=Path("/"))


async def git(*arguments: str, at: Path, quiet: bool = False) -> None:
    """Plain git."""
    output = asyncio.subprocess.DEVNULL if quiet else None
    process = await asyncio.create_subprocess_exec("git", *arguments, cwd=at, stdout=output)
    assert await process.wait() == 0


def make_repository(folder: Path) -> None:
    """10,000 files in 100 folders, and 2,000 commits that each change one of them."""
    folder.mkdir(parents=True)
    stream = [b"reset refs/heads/main\n"]
    for number in range(COMMITS):
        stream.append(_commit(f"commit {number}"))
        stream += (
            [_file(file, "first") for file in range(FILES)] if number == 0 else [_file(number % FILES, f"{number}")]
        )
    _git_at(folder, "init", "--quiet", "--bare", "-b", "main", ".")
    _git_at(folder, "fast-import", "--quiet", feed=b"".join(stream))
    _git_at(folder, "repack", "-a", "-d", "-q")


def change_one(folder: Path, number: int) -> None:
    """One more commit."""
    feed = _commit(f"change {number}") + b"from refs/heads/main^0\n" + _file(number, f"changed {number}")
    _git_at(folder, "fast-import", "--quiet", feed=feed)


def _commit(message: str) -> bytes:
    return f"commit refs/heads/main\ncommitter a <a@example.org> 0 +0000\ndata {len(message)}\n{message}\n".encode()


def _file(number: int, value: str) -> bytes:
    name = f"apps/{number % 100:02}/file-{number}.yaml"
    text = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: file-{number}\ndata:\n  value: {value!r}\n"
        + "  # filler\n" * 40
    )
    return f"M 100644 inline {name}\ndata {len(text)}\n{text}\n".encode()


def _git_at(folder: Path, *arguments: str, feed: bytes = b"") -> None:
    subprocess.run(["git", *arguments], cwd=folder, input=feed, check=True, capture_output=True)
