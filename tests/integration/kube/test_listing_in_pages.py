"""Large collections arrive in pages, whole and once."""

import asyncio
from typing import Any

from starling.kube import Client, Selection
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap

MANY = 5_000


async def fill(client: Client, namespace: str, count: int) -> None:
    """Make that many ConfigMaps."""
    limit = asyncio.Semaphore(32)

    async def one(number: int) -> None:
        async with limit:
            body: dict[str, Any] = {"metadata": {"name": f"n{number:05}", "labels": {"parity": str(number % 2)}}}
            await client.create(CONFIG_MAPS, body, namespace=namespace)

    await asyncio.gather(*(one(number) for number in range(count)))


async def test_five_thousand_objects_list_in_pages(client: Client, namespace: str) -> None:
    """Every object arrives once, whatever the page size, and no page is larger than asked for."""
    await fill(client, namespace, MANY)
    here = Selection(namespace=namespace)
    sizes = [len(page.items) async for page in client.pages(CONFIG_MAPS, ConfigMap, here)]
    assert sizes == [500] * 10
    listing = await client.list(CONFIG_MAPS, ConfigMap, here, page_size=999)
    assert [item.metadata.name for item in listing.items] == [f"n{number:05}" for number in range(MANY)]
    assert int(listing.resource_version) > 0


async def test_selectors_narrow_a_listing(client: Client, namespace: str) -> None:
    """Label and field selectors are the server's to apply."""
    await fill(client, namespace, 4)
    odd = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace, labels="parity=1"))
    assert [item.metadata.name for item in odd.items] == ["n00001", "n00003"]
    one = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace, fields="metadata.name=n00002"))
    assert [item.metadata.name for item in one.items] == ["n00002"]
    none = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace, labels="parity in (5, 6)"))
    assert list(none.items) == []
