"""A client that is closed has no connection left, whatever was going on."""

import asyncio
import os
import socket
from contextlib import suppress

from starling.kube import Client, KubeError, Patience
from starling.local import LocalCluster
from tests.integration.clusters import through
from tests.integration.relay import Relay


async def connected(client: Client) -> None:
    """Return in the very turn of the loop in which TLS has been agreed on, and aiohttp doesn't know of it yet."""
    known = client.transport._connected
    while not any(each.transport is not None for each in known):  # noqa: ASYNC110 - nobody tells of that moment
        await asyncio.sleep(0)


async def test_also_one_whose_request_is_cancelled_as_it_is_connected(cluster: LocalCluster) -> None:
    """Nobody else has it, and left alone it would say goodbye and wait for an answer."""
    async with Relay(cluster.port) as relay:
        client = Client(through(cluster, relay.port))
        asking = asyncio.create_task(client.raw("GET", "/version"))
        await connected(client)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        (left,) = [each.transport for each in client.transport._connected if each.transport is not None]
        end = left.get_extra_info("socket")
        assert end.fileno() >= 0, "the moment wasn't met"
        await client.close()
        assert end.fileno() < 0


def connected_to(port: int) -> int:
    """How many sockets that the loop looks after lead to `port`."""
    count = 0
    for watched in asyncio.get_running_loop()._selector.get_map():  # type: ignore[attr-defined]
        with suppress(OSError), socket.socket(fileno=os.dup(watched)) as end:
            count += end.getpeername() == ("127.0.0.1", port)
    return count


async def test_also_one_that_is_still_being_made(cluster: LocalCluster) -> None:
    """Its request goes on, and fails; what it got to is gone by then, without waiting for the server's goodbye."""
    async with Relay(cluster.port) as relay:
        client = Client(through(cluster, relay.port), patience=Patience(attempts=1))
        asking = asyncio.create_task(client.raw("GET", "/version"))
        while not client.transport._connected:  # noqa: ASYNC110 - nobody tells of that moment
            await asyncio.sleep(0)
        assert all(each.transport is None for each in client.transport._connected), "the moment wasn't met"
        await client.close()
        with suppress(KubeError):
            await asking
        await asyncio.sleep(0)
        assert connected_to(relay.port) == 0
