"""The build: once for everyone, whole or not at all.

The real Go builds with the real module files; only main.go is a small one here, since Kubernetes takes Go minutes.
"""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from starling.local import LocalError, ToolMissingError, build
from starling.local.build import SOURCES, build_control_plane
from tests.integration.local.conftest import processes_with

MAIN = """package main

import "fmt"

func main() { fmt.Println("built") }
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small program's sources, and a cache of ours with nothing in it; Go keeps its own."""
    go_cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copy(SOURCES / name, folder / name)
    (folder / "main.go").write_text(MAIN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOCACHE", go_cache)
    monkeypatch.setenv("STARLING_TEST_BUILD", str(tmp_path))
    return folder


def kept(tmp_path: Path) -> list[str]:
    """The names of the programs in the cache, whole or not."""
    return [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]


def printed_by(program: Path) -> str:
    """What a program prints."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


async def test_builders_at_once_build_once(sources: Path, tmp_path: Path) -> None:
    """Several builders at the same time make one build, and all get its program, which runs."""
    told: list[str] = []
    programs = await asyncio.gather(*(build_control_plane(told.append, sources) for _ in range(5)))
    assert sum(line.startswith("built Kubernetes") for line in told) == 1
    assert sum(line.startswith("waiting for a build") for line in told) == 4
    assert len(set(programs)) == 1
    assert printed_by(programs[0]) == "built\n"
    assert kept(tmp_path) == ["control-plane"]


@pytest.mark.parametrize("phase", ["downloading", "compiling"])
async def test_an_interrupted_build_leaves_nothing(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """After a build is cancelled, no program is there, Go and all that it started is gone, and the next build works."""
    if phase == "compiling":  # with nothing compiled before, Go is at it for seconds, with compilers of its own
        monkeypatch.setenv("GOCACHE", str(tmp_path / "go-cache"))
    reached = asyncio.Event()

    def report(line: str) -> None:
        if line.startswith(phase):
            reached.set()

    task = asyncio.create_task(build_control_plane(report, sources))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kept(tmp_path) == []
    # This process has the mark only for its children: /proc shows the environment that one was started with.
    assert processes_with(f"STARLING_TEST_BUILD={tmp_path}") == []
    await build_control_plane(print, sources)
    assert kept(tmp_path) == ["control-plane"]


async def test_a_failed_build_says_what_go_said(sources: Path, tmp_path: Path) -> None:
    """What Go complains about is in the error, and nothing is kept."""
    (sources / "main.go").write_text(MAIN.replace("Println", "Prntln"))
    with pytest.raises(LocalError, match=r"(?s)compiling Kubernetes v\S+ failed: .*undefined: fmt\.Prntln"):
        await build_control_plane(print, sources)
    assert kept(tmp_path) == []


async def test_a_failed_download_says_what_go_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no modules and nowhere to get them, Kubernetes' own build says so; nothing is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "go-cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(LocalError, match=r"(?s)downloading the sources of Kubernetes v\S+ failed: .*GOPROXY=off"):
        await build(print)
    assert kept(tmp_path) == []


async def test_no_go_but_a_build_from_before(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go is needed only while there is something to build."""
    program = await build_control_plane(print, sources)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert await build_control_plane(print, sources) == program
    program.unlink()
    with pytest.raises(ToolMissingError):
        await build_control_plane(print, sources)
