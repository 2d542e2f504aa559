"""A client that is closed has no connection left, whatever was going on."""

import asyncio
from contextlib import suppress

from starling.kube import Client
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
        socket = left.get_extra_info("socket")
        assert socket.fileno() >= 0, "the moment wasn't met"
        await client.close()
        assert socket.fileno() < 0
