"""The build: once for everyone, whole or not at all.

Go is a small script here; the real one has its turn in every other test.
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
    [ -e "$STARLING_TEST_FAIL" ] && { echo "main.go:1: does not compile" >&2; exit 1; }
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
        self.fail = folder / "fail"
        self.programs = folder / "bin"
        self.programs.mkdir()
        (self.programs / "go").write_text(GO)
        (self.programs / "go").chmod(0o755)

    def built(self) -> list[str]:
        return [path.name for path in self.cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that this process takes for its own."""
    machine = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{machine.programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.cache))
    monkeypatch.setenv("STARLING_TEST_CALLS", str(machine.calls))
    monkeypatch.setenv("STARLING_TEST_HANG", str(machine.hang))
    monkeypatch.setenv("STARLING_TEST_FAIL", str(machine.fail))
    return machine


async def test_builders_at_once_build_once(machine: Machine) -> None:
    """Several builders at the same time make one build and all get its program."""
    results = await asyncio.gather(*(build(print) for _ in range(5)))
    assert machine.calls.read_text().split() == ["list", "build"]
    assert {tuple(binaries.command("etcd")) for binaries in results} == {tuple(results[0].command("etcd"))}
    program, component = results[0].command("etcd")
    assert (Path(program).read_text(), component) == ("program\n", "etcd")
    assert machine.built() == ["control-plane"]


@pytest.mark.parametrize("when", ["list", "build", "hanging"])
async def test_an_interrupted_build_leaves_nothing(machine: Machine, when: str) -> None:
    """After a build is cancelled, no program is there, Go is gone, and the next build works."""
    machine.hang.touch()
    task = asyncio.create_task(build(print))
    await until(lambda: machine.calls.exists() and when in machine.calls.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert machine.built() == []
    assert processes_with(f"STARLING_TEST_HANG={machine.hang}") == []
    machine.hang.unlink()
    await build(print)
    assert machine.built() == ["control-plane"]


async def test_a_failed_build_says_what_go_said(machine: Machine) -> None:
    """What Go complains about is in the error, and nothing is kept."""
    machine.fail.touch()
    with pytest.raises(LocalError, match=r"main\.go:1: does not compile"):
        await build(print)
    assert machine.built() == []


async def test_no_go_but_a_build_from_before(machine: Machine) -> None:
    """Go is needed only while there is something to build."""
    first = await build(print)
    (machine.programs / "go").unlink()
    assert await build(print) == first
    Path(first.command("etcd")[0]).unlink()
    with pytest.raises(ToolMissingError):
        await build(print)
