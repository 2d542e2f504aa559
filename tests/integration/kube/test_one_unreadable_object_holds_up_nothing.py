"""An object that can't be decoded stays as it was last known, and what is known of all others goes on."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import pytest

from starling.kube import (
    Changed,
    Client,
    Deleted,
    Event,
    Interrupted,
    Metadata,
    Selection,
    Synced,
    Unreadable,
    WatchOptions,
    kubeconfig,
    watch,
)
from starling.kube.watch import Unread
from starling.local import LocalCluster
from starling.runtime import Informer, Key
from tests.integration.clusters import compact, kill, revive, running, through
from tests.integration.config_maps import CONFIG_MAPS, config_map
from tests.integration.relay import Relay
from tests.waiting import until

GOOD = "2020-01-01T00:00:00Z"
LATER = "2021-01-01T00:00:00Z"
# Each is a date-time to an API server.
BAD = ("2020-01-01T00:00:00x5Z", "2020-01-01T00:00:00,5Z", "0000-01-01T00:00:00Z", "2020-01-01T00:00:00+24:00")
QUICK = WatchOptions(first_wait=0.02, longest_wait=0.2, page_size=2)


class Dated(msgspec.Struct):
    """A ConfigMap of dates."""

    metadata: Metadata
    data: dict[str, datetime] = {}


@dataclass
class Story:
    """What a watch told, and what its consumer knows by it."""

    events: list[Event[Dated]] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    async def listen(self, client: Client, namespace: str) -> None:
        """Follow the namespace."""
        async for event in watch(client, CONFIG_MAPS, Dated, Selection(namespace, labels="app"), QUICK):
            match event:
                case Changed(object=item):
                    self.known[item.metadata.name] = str(item.data["at"].year)
                case Deleted(name=name):
                    del self.known[name]
            self.events.append(event)

    def unread(self) -> list[str]:
        """The names that were told as unreadable, in order."""
        return [event.metadata.name for event in self.events if isinstance(event, Unread)]

    def count(self, kind: type) -> int:
        """How often that was told."""
        return sum(isinstance(event, kind) for event in self.events)


@asynccontextmanager
async def told(client: Client, namespace: str) -> AsyncIterator[Story]:
    """A watch that runs, and is in sync."""
    story = Story()
    task = asyncio.create_task(story.listen(client, namespace))
    try:
        await until(lambda: story.count(Synced) == 1)
        yield story
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def put(client: Client, namespace: str, name: str, at: str) -> Metadata:
    """Write a date."""
    answer = await client.apply(CONFIG_MAPS.ref(name, namespace), config_map(name, at=at))
    return msgspec.convert(answer.json()["metadata"], Metadata)


@pytest.mark.parametrize("bad", BAD)
async def test_a_listing_goes_past_it(
    client: Client, namespace: str, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All others are told, on its page and on others; its name and the field are logged, its value isn't."""
    for name in ("a", "b", "d"):
        await put(client, namespace, name, GOOD)
    await put(client, namespace, "c", bad)
    async with told(client, namespace) as story:
        assert story.known == dict.fromkeys("abd", "2020")
        assert story.unread() == ["c"]
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == 1
    assert f"ConfigMap {namespace}/c can't be read" in lines[0]
    assert "Invalid RFC3339 encoded datetime - at `$.data[...]`" in lines[0]
    assert bad not in caplog.text


async def test_a_stream_goes_past_it(client: Client, namespace: str) -> None:
    """It stays as it was told, until it can be read again or is deleted; nothing is interrupted."""
    for name in ("a", "b"):
        await put(client, namespace, name, GOOD)
    async with told(client, namespace) as story:
        await put(client, namespace, "a", BAD[0])
        await put(client, namespace, "b", LATER)
        await until(lambda: story.known == {"a": "2020", "b": "2021"})
        assert story.unread() == ["a"]
        await put(client, namespace, "a", LATER)
        await until(lambda: story.known["a"] == "2021")
        await put(client, namespace, "a", BAD[1])
        await client.delete(CONFIG_MAPS.ref("a", namespace))
        await until(lambda: story.known == {"b": "2021"})
        await put(client, namespace, "never-known", BAD[1])
        await client.delete(CONFIG_MAPS.ref("never-known", namespace))
        await put(client, namespace, "b", GOOD)
        await until(lambda: story.known == {"b": "2020"})
        assert story.unread() == ["a", "a", "never-known"]
        assert story.count(Deleted) == 1
        assert story.count(Interrupted) == 0


@pytest.fixture
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of this file's own, to be killed."""
    with running(tmp_path_factory.mktemp("fragile"), "fragile") as cluster:
        yield cluster


async def test_a_new_listing_tells_what_is_gone_and_nothing_twice(
    fragile: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """While it is in the listing it isn't deleted; one that was made anew under its name is another."""
    async with (
        Relay(fragile.port) as relay,
        Client(kubeconfig(fragile.kubeconfig)) as direct,
        Client(through(fragile, relay.port)) as behind,
    ):
        for name in ("kept", "gone", "anew"):
            await put(direct, "default", name, GOOD)
        await put(direct, "default", "never-known", BAD[0])
        async with told(behind, "default") as story:
            for name in ("kept", "gone"):
                await put(direct, "default", name, BAD[0])
            await until(lambda: story.unread() == ["never-known", "kept", "gone"])
            relay.cut()
            for name in ("gone", "anew"):
                await direct.delete(CONFIG_MAPS.ref(name, "default"))
            last = await put(direct, "default", "anew", BAD[0])
            await compact(fragile, int(last.resource_version))
            kill(fragile)
            await revive(fragile)
            await relay.mend()
            await until(lambda: story.count(Synced) == 2)
            assert story.known == {"kept": "2020"}
            assert story.unread() == ["never-known", "kept", "gone", "anew"]
            await put(direct, "default", "kept", LATER)
            await until(lambda: story.known == {"kept": "2021"})
    assert caplog.text.count("can't be read") == 4


async def test_an_informer_counts_it(client: Client, namespace: str) -> None:
    """It is in sync all the same, and knows the object as it was."""
    await put(client, namespace, "a", GOOD)
    informer = Informer(client, CONFIG_MAPS, Dated, Selection(namespace, labels="app"), QUICK)
    task = asyncio.create_task(informer.run())
    async with asyncio.timeout(60):
        await informer.synced()
    assert informer.unreadable == 0
    await put(client, namespace, "a", BAD[0])
    await until(lambda: informer.unreadable == 1)
    known = informer.get(Key(namespace, "a"))
    assert known is not None
    assert known.data["at"].year == 2020
    await client.delete(CONFIG_MAPS.ref("a", namespace))
    await until(lambda: len(informer) == 0)
    assert informer.interruptions == 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_list_names_it(client: Client, namespace: str) -> None:
    """Who asks for all gets all, or is told which can't be had, and where in it; not its value."""
    for name in ("a", "b", "c"):
        await put(client, namespace, name, BAD[0] if name == "b" else GOOD)
    with pytest.raises(Unreadable) as raised:
        await client.list(CONFIG_MAPS, Dated, Selection(namespace, labels="app"))
    assert str(raised.value) == (
        f"list ConfigMap in {namespace}: {namespace}/b isn't what was asked for: "
        "Invalid RFC3339 encoded datetime - at `$.data[...]`"
    )
