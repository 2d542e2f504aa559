"""What three hundred idle watches weigh, against as many bare aiohttp streams; each in a process of its own."""

import asyncio
import gc
import os
import sys
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import aiohttp
import msgspec

from benchmarks.rows import Row
from starling.aio import slim_tls_buffers
from starling.kube import Client, Metadata, Resource, Selection, Synced, kubeconfig, watch
from starling.local import LocalCluster

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
HERE = Selection("kube-public")
WATCHES = 300


class Named(msgspec.Struct):
    """What a watch decodes here."""

    metadata: Metadata


async def measure(cluster: LocalCluster) -> list[Row]:
    """Memory grown by all of them, in processes of their own: freed memory would flatter whoever comes second."""
    bare, ours = await in_child("bare", cluster), await in_child("ours", cluster)
    return [
        Row(f"{WATCHES} idle bare aiohttp streams, KiB each", f"{bare / 1024 / WATCHES:.0f}"),
        Row(f"{WATCHES} idle watches, KiB each", f"{ours / 1024 / WATCHES:.0f}"),
        Row(f"{WATCHES} idle watches, MiB in all", f"{ours / 1024 / 1024:.1f}"),
    ]


async def in_child(kind: str, cluster: LocalCluster) -> int:
    """What a fresh Python process measures."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, kind, str(cluster.kubeconfig), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return int(output)


async def weigh_ours(path: Path) -> int:
    """Our watches, as a process of Starling's runs them."""
    slim_tls_buffers()
    async with Client(kubeconfig(path)) as client, AsyncExitStack() as stack:
        await client.list(CONFIG_MAPS, Named, HERE)
        before = resident()
        port = int((await client.transport.access()).server.rsplit(":", 1)[1])
        streams = []
        for _ in range(WATCHES):
            events = await stack.enter_async_context(aclosing(watch(client, CONFIG_MAPS, Named, HERE)))
            while not isinstance(await anext(events), Synced):
                pass
            streams.append(asyncio.ensure_future(anext(events)))
        while connections(port) < WATCHES:
            await asyncio.sleep(0.05)
        grown = resident() - before
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        return grown


async def weigh_bare(path: Path) -> int:
    """Streams opened with aiohttp and nothing else."""
    access = await kubeconfig(path)()
    url = f"{access.server}{CONFIG_MAPS.path(HERE.namespace)}"
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True)
    async with aiohttp.ClientSession(connector=connector) as session, AsyncExitStack() as stack:
        async with session.get(url) as response:
            await response.read()
        before = resident()
        for _ in range(WATCHES):
            await stack.enter_async_context(session.get(f"{url}?watch=true&allowWatchBookmarks=true"))
        return resident() - before


def resident() -> int:
    """This process's resident memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connections(port: int) -> int:
    """How many established connections there are to a port on this machine."""
    remote = f":{port:04X}"
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(remote) and line.split()[3] == "01" for line in lines)


if __name__ == "__main__":
    weigh = {"ours": weigh_ours, "bare": weigh_bare}[sys.argv[1]]
    print(asyncio.run(weigh(Path(sys.argv[2]))))
