"""However a command ends, its exit code says how, and running it again is right."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

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
