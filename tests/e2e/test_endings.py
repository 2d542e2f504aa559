"""However a command ends, its exit code says how, and running it again is right."""

import asyncio
import fcntl
import os
import signal
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from starling.local import GitServer
from tests.e2e.conftest import Starling
from tests.waiting import until


async def test_an_interrupted_up_carries_on(environment: dict[str, str], starling: Starling) -> None:
    """Ctrl-C in the middle of `up` is 130 and one word; the next `up` has the cluster running."""
    folder = Path(environment["STARLING_LOCAL_DIR"]) / "hub"
    up = await asyncio.create_subprocess_exec(
        *("starling", "local", "up", "hub"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await until((folder / "cluster.json").exists)
    up.send_signal(signal.SIGINT)
    _, told = await up.communicate()
    assert (up.returncode, told.splitlines()[-1]) == (130, b"interrupted")
    again = starling("local", "up", "hub")
    assert (again.returncode, again.stdout) == (0, f"{folder}/kubeconfig\n")
    assert starling("local", "kubectl", "hub", "get", "--raw", "/readyz").stdout == "ok"


async def test_interrupted_before_it_has_begun(environment: dict[str, str]) -> None:
    """Ctrl-C while the program is still being loaded is 130 and one word, too."""
    early = await asyncio.create_subprocess_exec(
        *("starling", "tree", "--name", "web"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    loaded = Path(f"/proc/{early.pid}/maps")
    await until(lambda: "multidict" in loaded.read_text())  # among the first of what takes half a second
    early.send_signal(signal.SIGINT)
    said, told = await early.communicate()
    assert (early.returncode, said, told) == (130, b"", b"interrupted\n")


async def test_ended_while_git_waits(environment: dict[str, str], tmp_path: Path) -> None:
    """SIGTERM is 143 and one word; the files that git has the password from are gone by then, and so is git."""
    asked = asyncio.Event()

    class Silent(GitServer):
        async def _serve(self, request: web.Request) -> web.StreamResponse:
            asked.set()
            await asyncio.Event().wait()
            return await super()._serve(request)

    secret, own = tmp_path / "secret", tmp_path / "own"
    for folder in (secret, own):
        folder.mkdir()
    (secret / "username").write_text("me")
    (secret / "password").write_text("hunter2")
    async with Silent(tmp_path) as server:
        url = f"{server.url}/app.git"
        check = await asyncio.create_subprocess_exec(
            *("starling", "source", "check", url, "--credentials", str(secret)),
            env={**environment, "TMPDIR": str(own), "STARLING_CACHE_DIR": str(own / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        await asked.wait()
        assert gits(url)
        assert having(own, b"hunter2")
        check.send_signal(signal.SIGTERM)
        said, told = await check.communicate()
        assert (check.returncode, said, told) == (143, b"", b"ended\n")
        assert (gits(url), having(own, b"")) == ([], [])


def having(folder: Path, text: bytes) -> list[Path]:
    """The files below a folder that have this text."""
    return [file for file in folder.rglob("*") if file.is_file() and text in file.read_bytes()]


def gits(url: str) -> list[bytes]:
    """The command lines of git, and of what it runs, that have this address."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(process.read_bytes())
    return [line for line in found if url.encode() in line and b"git" in line.split(b"\0")[0]]


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)], ids=str)
async def test_ended_while_stdin_is_read(environment: dict[str, str], number: signal.Signals, ending: int) -> None:
    """Who waits for input is ended at once: by the first Ctrl-C, and SIGTERM finds nothing to put away."""
    reader, writer = os.pipe()
    waits = await asyncio.create_subprocess_exec(
        *("starling", "apply", "-f", "-", "--name", "web"), env=environment, stdin=reader, stderr=subprocess.DEVNULL
    )
    try:
        os.write(writer, b"#")
        await until(lambda: fcntl.ioctl(reader, termios.FIONREAD, b"1234") == bytes(4))
        waits.send_signal(number)
        async with asyncio.timeout(10):
            assert await waits.wait() == ending
    finally:
        os.close(writer)
        os.close(reader)
        await waits.wait()


def test_output_that_nobody_reads(environment: dict[str, str]) -> None:
    """A reader that has gone (head, less) is no error of ours: 141, as the shell has it, and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["starling", "install", "--export"], env=environment, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


ENDINGS: dict[str, tuple[list[str], int, str]] = {
    "a wrong option": (["local", "up", "--nonsense"], 2, "No such option"),
    "a wrong name": (["local", "up", "Not_A_Name"], 2, "error: 'Not_A_Name' can't be a cluster's name"),
    "an unknown cluster": (["local", "kubeconfig", "nobody"], 3, "error: there is no cluster nobody"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), ENDINGS.values(), ids=ENDINGS)
def test_a_wrong_call_is_told_apart_from_an_error(
    starling: Starling, arguments: list[str], code: int, message: str
) -> None:
    """What is wrong with the call is 2, what goes wrong is 3; either way nothing is on stdout."""
    done = starling(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_folder_that_cannot_be_used_is_named(environment: dict[str, str]) -> None:
    """The machine's own refusals are errors with the path, not tracebacks."""
    elsewhere = {**environment, "STARLING_LOCAL_DIR": "/proc/nowhere"}
    done = subprocess.run(
        ["starling", "local", "up", "hub"], env=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == "error: /proc/nowhere: No such file or directory\n"
