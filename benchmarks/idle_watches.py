"""What three hundred idle watches weigh in this process, against as many bare aiohttp streams."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from benchmarks.rows import Row
from starling.kube import Client, Metadata, Resource, Selection, Synced, kubeconfig, watch
from starling.local import LocalCluster

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
WATCHES = 300


class Named(msgspec.Struct):
    """What a watch decodes here."""

    metadata: Metadata


async def measure(cluster: LocalCluster) -> list[Row]:
    """Memory before and after; bare streams first, so that the allocator's slack doesn't flatter us."""
    source = kubeconfig(cluster.kubeconfig)
    access = await source()
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True)
    async with aiohttp.ClientSession(connector=connector) as session, Client(source) as client:
        await client.list(CONFIG_MAPS, Named, Selection("none"))

        @asynccontextmanager
        async def bare() -> AsyncIterator[None]:
            url = f"{access.server}/api/v1/namespaces/none/configmaps?watch=true&allowWatchBookmarks=true"
            async with session.get(url):
                yield

        @asynccontextmanager
        async def ours() -> AsyncIterator[None]:
            async with aclosing(watch(client, CONFIG_MAPS, Named, Selection("none"))) as events:
                assert isinstance(await anext(events), Synced)
                streaming = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0)
                yield
                streaming.cancel()
                await asyncio.gather(streaming, return_exceptions=True)

        mine, raw = await weigh(ours, cluster), await weigh(bare, cluster)
    return [
        Row(f"{WATCHES} idle bare streams, KiB each", f"{raw / 1024 / WATCHES:.1f}"),
        Row(f"{WATCHES} idle watches, KiB each", f"{mine / 1024 / WATCHES:.1f}"),
        Row(f"{WATCHES} idle watches, MiB in all", f"{mine / 1024 / 1024:.1f}"),
    ]


async def weigh(open_one: Callable[[], object], cluster: LocalCluster) -> int:
    """The bytes that this process grew by with all of them open."""
    before = resident()
    async with AsyncExitStack() as stack:
        for _ in range(WATCHES):
            await stack.enter_async_context(open_one())  # type: ignore[arg-type] # both are context managers
        async with asyncio.timeout(60):
            while connections(cluster.port) < WATCHES:
                await asyncio.sleep(0.05)
        return resident() - before


def resident() -> int:
    """This process's resident memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connections(port: int) -> int:
    """How many established connections this process's side has to a port."""
    remote = f":{port:04X}"
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(remote) and line.split()[3] == "01" for line in lines)
