"""The client's rate of server-side applies against bare aiohttp's, on the same server, turn by turn."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from benchmarks.rows import Row
from starling.kube import Client, Resource, kubeconfig
from starling.local import LocalCluster

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
TURNS = 7
PER_TURN = 800
CONCURRENCY = 16

Apply = Callable[[str], Awaitable[object]]
Body = Callable[[str], dict[str, object]]


async def measure(cluster: LocalCluster) -> list[Row]:
    """Both ways in turn, so that what the machine does meanwhile falls on both."""
    async with Client(kubeconfig(cluster.kubeconfig)) as client, bare_applies(cluster) as bare:

        async def ours(name: str) -> None:
            await client.apply(CONFIG_MAPS.ref(name, "default"), manifest(name))

        await rate(ours, "warm-ours"), await rate(bare, "warm-bare")
        turns = [(await rate(ours, f"ours{turn}"), await rate(bare, f"bare{turn}")) for turn in range(TURNS)]
    ratios = sorted(mine / raw for mine, raw in turns)
    ratio = statistics.median(ratios)
    return [
        Row("bare aiohttp, applies/s, median of turns", f"{statistics.median(raw for _, raw in turns):,.0f}"),
        Row("starling.kube against it, lowest and highest turn", f"{ratios[0]:.0%} to {ratios[-1]:.0%}"),
        Row("starling.kube against it, median of turns", f"{ratio:.0%}", "≥ 90 %", held=ratio >= 0.9),
    ]


def manifest(name: str) -> dict[str, object]:
    """A small object, as the numbers in the design take it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value", "name": name}}


@asynccontextmanager
async def bare_applies(cluster: LocalCluster, body: Body = manifest) -> AsyncIterator[Apply]:
    """Server-side apply of an object, by its name, with aiohttp and nothing else."""
    access = await kubeconfig(cluster.kubeconfig)()
    headers = {"Content-Type": "application/apply-patch+yaml", "Accept": "application/json"}
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def apply(name: str) -> None:
            url = f"{access.server}/api/v1/namespaces/default/configmaps/{name}?fieldManager=bare&force=true"
            async with session.patch(url, data=msgspec.json.encode(body(name))) as response:
                response.raise_for_status()
                await response.read()

        yield apply


async def rate(apply: Apply, prefix: str, number: int = PER_TURN) -> float:
    """Applies a second, at the concurrency that saturates the server."""
    names = iter([f"{prefix}-{index}" for index in range(number)])

    async def worker() -> None:
        for name in names:
            await apply(name)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    return number / (time.perf_counter() - start)
