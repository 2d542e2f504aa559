"""Who waits for a server that was away hears of its return from whoever asks first, and asks no more than that."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starling.aio import SYSTEM_CLOCK, Clock, SystemClock
from starling.kube import Client, Forbidden, Interrupted, Selection, Synced, WatchOptions, kubeconfig_data, watch
from starling.local import LocalCluster
from tests.integration.clusters import through
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap
from tests.integration.relay import Relay
from tests.waiting import until

PATIENT = WatchOptions(first_wait=3600.0, longest_wait=3600.0)
REFUSAL = b'{"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "code": 403, "message": "not yet"}'


@asynccontextmanager
async def watching(client: Client, options: WatchOptions = PATIENT) -> AsyncIterator[list[object]]:
    """A watch at work while the block runs, and what it told."""
    told: list[object] = []

    async def listen() -> None:
        async for event in watch(client, CONFIG_MAPS, ConfigMap, Selection("default"), options):
            told.append(event)  # noqa: PERF401 - each as it comes

    task = asyncio.create_task(listen())
    try:
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def serving(answer: Callable[[bytes], bytes], clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[Client]:
    """A client of a server that answers so, given the request's path, and hangs up on whom it has no answer for."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        writer.write(answer(path))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    here = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "here", "context": {"cluster": "here", "user": "nobody"}}
    user = {"name": "nobody", "user": {"token": "x"}}
    data = {"clusters": [here], "contexts": [context], "users": [user], "current-context": "here"}
    async with server, Client(kubeconfig_data(data), clock=clock) as client:
        yield client


def http(status: str, body: bytes) -> bytes:
    """An answer after which the connection ends."""
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status.encode(), len(body), body)


async def test_all_who_wait_are_called_when_one_is_answered(cluster: LocalCluster) -> None:
    """However long each of them would have waited."""
    async with Relay(cluster.port) as relay, Client(through(cluster, relay.port)) as client:
        relay.cut()
        async with watching(client) as one, watching(client) as another:
            await until(lambda: bool(one and another))
            await relay.mend()
            await client.raw("GET", "/version")
            await until(lambda: isinstance(one[-1], Synced) and isinstance(another[-1], Synced))


async def test_what_nobody_but_one_can_get_is_not_asked_for_in_a_circle() -> None:
    """The server answers others all the time: that calls the one it doesn't answer once, and no more."""
    asked: list[bytes] = []

    def answer(path: bytes) -> bytes:
        asked.append(path)
        return http("200 OK", b"{}") if path == b"/version" else b""

    async with serving(answer) as client, watching(client) as told:
        for tries in (1, 2):
            await until(lambda tries=tries: len(told) == tries)  # type: ignore[misc] # a lambda's default
            for _ in range(5):
                await client.raw("GET", "/version")
    assert len([path for path in asked if path != b"/version"]) == 2


class Recording(SystemClock):
    """A clock that doesn't wait, and remembers how long it was asked to."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def test_a_server_that_has_just_come_back_is_asked_again_soon() -> None:
    """It refuses for a moment what it will allow: the time for which it was away doesn't count."""
    answers = [*[b""] * 7, *[http("403 Forbidden", REFUSAL)] * 3]
    clock = Recording()

    def answer(_path: bytes) -> bytes:
        return answers.pop(0) if answers else b""

    async with serving(answer, clock) as client, watching(client, WatchOptions()) as told:
        await until(lambda: len(told) >= 10)
    errors = [event.error for event in told if isinstance(event, Interrupted)]
    assert [isinstance(error, Forbidden) for error in errors[:10]] == [False] * 7 + [True] * 3
    assert clock.waits[6] > 3.0
    assert clock.waits[7] <= 0.1
    assert clock.waits[7] < clock.waits[9] <= 0.4


async def test_one_that_comes_and_goes_is_not_asked_in_a_circle() -> None:
    """Waits begin anew once: a gateway that answers every other time is as good as away."""
    gateway = http("503 Service Unavailable", b"{}")
    answers = [b"", gateway] * 8
    clock = Recording()

    def answer(_path: bytes) -> bytes:
        return answers.pop(0) if answers else b""

    async with serving(answer, clock) as client, watching(client, WatchOptions()) as told:
        await until(lambda: len(told) >= 16)
    assert clock.waits[15] > 10.0
