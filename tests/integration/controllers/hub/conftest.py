"""A hub on an API server of its own, with what an installation holds, and a namespace for every test."""

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from starling.api.installation import installation
from starling.kube import Client, kubeconfig
from starling.local import GitServer, LocalCluster
from tests.integration.clusters import running
from tests.integration.controllers.hub.stage import CRDS, NAMESPACES, Hub, as_controller, put
from tests.waiting import until

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The hub's API server, with all that Starling needs there."""
    with running(tmp_path_factory.mktemp("hub"), "hub") as server:
        asyncio.run(_install(server))
        yield server


async def _install(server: LocalCluster) -> None:
    async with Client(kubeconfig(server.kubeconfig)) as client:
        documents = installation()
        kinds = [each for each in documents if each["kind"] == "CustomResourceDefinition"]
        await put(client, kinds)

        async def established() -> bool:
            found = (await client.raw("GET", CRDS.path())).json()["items"]
            return all(
                any(c["type"] == "Established" and c["status"] == "True" for c in each["status"]["conditions"] or ())
                for each in found
            )

        await until(established)
        await put(client, [each for each in documents if each not in kinds])


class Overheard(logging.Handler):
    """What Starling logs. Mutable: it is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, with the error if there is one."""
        self.lines.append(f"{record.getMessage()} {record.exc_info[1]!r}" if record.exc_info else record.getMessage())


@pytest.fixture
def log() -> Iterator[list[str]]:
    """What Starling logs during the test; an access that its role lacks, or a mistake of ours, fails it."""
    overheard, logger = Overheard(), logging.getLogger("starling")
    logger.addHandler(overheard)
    try:
        yield overheard.lines
    finally:
        logger.removeHandler(overheard)
    wrong = [line for line in overheard.lines if "forbidden" in line.lower() or "nobody expected" in line]
    assert not wrong


@pytest.fixture
async def hub(server: LocalCluster, tmp_path: Path, log: list[str]) -> AsyncIterator[Hub]:
    """A namespace of the test's own, a repository, and ways to run a hub for them."""
    async with Client(kubeconfig(server.kubeconfig)) as client, GitServer(tmp_path / "git", "me", "pw") as private:
        namespace = f"test-{os.getpid()}-{next(_numbers)}"
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        async with GitServer(tmp_path / "git") as open_:
            access = await as_controller(client, server)
            hub = Hub(client, access, namespace, tmp_path, open_.url, private.url, log)
            try:
                yield hub
            finally:
                await hub.clean()
