"""The build: once for everyone, whole or not at all.

The real Go builds what every other test runs on, and fails for real here. Where a build has to be counted, or to hang
at one point for as long as a test wants, Go is a small program that does just that: Kubernetes takes the real one
minutes, and nothing has it stop at a given point. None of Go's judgement is imitated: what is tested is our lock, our
killing and our files, and those meet real processes, pipes and signals.
"""

import asyncio
from pathlib import Path

import pytest

from starling.local import LocalError, ToolMissingError, build
from tests.integration.local.conftest import processes_with, until

GO = """#!/bin/sh
echo "$1" >> "$STARLING_TEST_CALLS"
case "$1" in
list) echo "go: downloading example.org/module v1" >&2; echo a; echo b ;;
build)
    [ -e "$STARLING_TEST_HANG" ] && { echo hanging >> "$STARLING_TEST_CALLS"; sleep 600; }
    echo a >&2
    while [ "$1" != "-o" ]; do shift; done
    echo program > "$2" ;;
esac
"""


class Machine:
    """A machine with a Go whose behaviour files decide, and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.calls = folder / "calls"
        self.hang = folder / "hang"
        self.programs = folder / "bin"
        self.programs.mkdir()
        (self.programs / "go").write_text(GO)
        (self.programs / "go").chmod(0o755)


def built(cache: Path) -> list[str]:
    """Give the names of the programs in the cache, whole or not; Go's own cache is beside ours."""
    return [path.name for path in (cache / "starling").rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that this process takes for its own."""
    machine = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{machine.programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.cache))
    monkeypatch.setenv("STARLING_TEST_CALLS", str(machine.calls))
    monkeypatch.setenv("STARLING_TEST_HANG", str(machine.hang))
    return machine


async def test_builders_at_once_build_once(machine: Machine) -> None:
    """Several builders at the same time make one build and all get its program."""
    results = await asyncio.gather(*(build(print) for _ in range(5)))
    assert machine.calls.read_text().split() == ["list", "build"]
    assert {tuple(binaries.command("etcd")) for binaries in results} == {tuple(results[0].command("etcd"))}
    program, component = results[0].command("etcd")
    assert (Path(program).read_text(), component) == ("program\n", "etcd")
    assert built(machine.cache) == ["control-plane"]


@pytest.mark.parametrize("when", ["list", "build", "hanging"])
async def test_an_interrupted_build_leaves_nothing(machine: Machine, when: str) -> None:
    """After a build is cancelled, no program is there, Go is gone, and the next build works."""
    machine.hang.touch()
    task = asyncio.create_task(build(print))
    await until(lambda: machine.calls.exists() and when in machine.calls.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert built(machine.cache) == []
    assert processes_with(f"STARLING_TEST_HANG={machine.hang}") == []
    machine.hang.unlink()
    await build(print)
    assert built(machine.cache) == ["control-plane"]


async def test_a_failed_build_says_what_go_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the real Go complains about, with no modules and nowhere to get them, is in the error; nothing is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(LocalError, match=r"(?s)downloading the sources of Kubernetes v\S+ failed: .*GOPROXY=off"):
        await build(print)
    assert built(tmp_path / "cache") == []


async def test_no_go_but_a_build_from_before(machine: Machine) -> None:
    """Go is needed only while there is something to build."""
    first = await build(print)
    (machine.programs / "go").unlink()
    assert await build(print) == first
    Path(first.command("etcd")[0]).unlink()
    with pytest.raises(ToolMissingError):
        await build(print)
