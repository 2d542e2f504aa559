"""The command line as a user runs it, with a state folder of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from starling.local import find_binaries
from tests.e2e.fleets import Fleet, Repository

Starling = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user who has nothing yet but the cached build; clusters are ended afterwards."""
    folder = tmp_path_factory.mktemp("user")
    own = {
        "STARLING_LOCAL_DIR": str(folder / "clusters"),
        "STARLING_CACHE_DIR": str(folder / "cache"),
        "NO_COLOR": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment = {**inherited, **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    try:
        yield environment
    finally:
        subprocess.run(["starling", "local", "down"], env=environment, check=True)


@pytest.fixture(scope="module")
def starling(environment: dict[str, str]) -> Starling:
    """Run `starling …`; the caller looks at the exit code."""

    def run(*arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["starling", *arguments], env=environment, input=stdin, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture(scope="module")
def kubectl() -> list[str]:
    """The command that kubectl is, for tests that ask a lot: `starling local kubectl` takes a second to start."""
    return list(asyncio.run(find_binaries(["kubectl"], print)).command("kubectl"))


@pytest.fixture
async def fleet(made: Fleet) -> AsyncIterator[Fleet]:
    """The fleet that a file of tests has `made`, with clients for one test."""
    try:
        yield made
    finally:
        await made.closed()


@pytest.fixture(scope="module")
def repository(made: Fleet) -> Repository:
    """What that fleet is to run: a folder for each test."""
    repository = Repository(made.repositories / "fleet", f"{made.git_server()}/fleet/.git")
    repository.commit({"README.md": "what the fleet runs"})
    return repository
