"""The command line as a user runs it, with a state folder of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starling.local import find_binaries

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
