"""A watch tells every change once: through cuts, restarts of the API server, and forgotten history."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from starling.kube import (
    EVERYTHING,
    AccessSource,
    Changed,
    Client,
    Deleted,
    Event,
    Forbidden,
    Gone,
    Identity,
    Interrupted,
    KubeError,
    Listing,
    NotFound,
    NotServed,
    Resource,
    Resumed,
    Selection,
    Synced,
    WatchOptions,
    kubeconfig,
    watch,
)
from starling.local import LocalCluster
from tests.integration.clusters import compact, kill, revive, running, through
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap, config_map
from tests.integration.relay import Relay
from tests.rounds import ROUNDS
from tests.waiting import until


@dataclass
class Audience:
    """What a watch told, as a consumer would keep it. `changed` is set at every event."""

    events: list[Event[ConfigMap]] = field(default_factory=list)
    known: dict[str, ConfigMap] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def listen(self, client: Client, selection: Selection, options: WatchOptions) -> None:
        async for event in watch(client, CONFIG_MAPS, ConfigMap, selection, options):
            self.events.append(event)
            match event:
                case Changed(object=item):
                    self.known[item.metadata.name] = item
                case Deleted(name=name):
                    del self.known[name]
            async with self.changed:
                self.changed.notify_all()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(condition)

    def data(self) -> dict[str, dict[str, str]]:
        return {name: item.data for name, item in self.known.items()}

    def count(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    def told_once(self) -> bool:
        """Whether no state of any object, and no deletion, was told twice."""
        states = Counter(
            (event.object.metadata.uid, event.object.metadata.resource_version)
            for event in self.events
            if isinstance(event, Changed)
        )
        deletions = Counter(event.uid for event in self.events if isinstance(event, Deleted))
        return all(times == 1 for times in (*states.values(), *deletions.values()))


@pytest.fixture
def audience() -> Audience:
    """A consumer that has heard nothing yet."""
    return Audience()


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of this file's own, to be killed."""
    with running(tmp_path_factory.mktemp("fragile"), "fragile") as cluster:
        yield cluster


QUICK = WatchOptions(first_wait=0.02, longest_wait=0.2)


async def test_what_exists_then_what_happens(client: Client, namespace: str, audience: Audience) -> None:
    """The listing comes first and ends with Synced; creations, changes and deletions follow as they happen."""
    await client.apply(CONFIG_MAPS.ref("old", namespace), config_map("old", x="1"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(audience.listen(client, Selection(namespace), QUICK))
        await audience.until(lambda: audience.count(Synced) == 1)
        assert audience.data() == {"old": {"x": "1"}}
        await client.apply(CONFIG_MAPS.ref("new", namespace), config_map("new", y="1"))
        await client.apply(CONFIG_MAPS.ref("old", namespace), config_map("old", x="2"))
        await audience.until(lambda: audience.data() == {"old": {"x": "2"}, "new": {"y": "1"}})
        await client.delete(CONFIG_MAPS.ref("old", namespace))
        await audience.until(lambda: audience.data() == {"new": {"y": "1"}})
        last = audience.events[-1]
        assert isinstance(last, Deleted)
        assert last.object is not None
        assert last.object.data == {"x": "2"}
        task.cancel()
    assert audience.told_once()


async def test_label_selectors_hold_for_listing_and_stream(client: Client, namespace: str, audience: Audience) -> None:
    """An object that leaves the selection is told as deleted, one that enters as changed."""
    await client.apply(CONFIG_MAPS.ref("a", namespace), config_map("a"))
    await client.apply(CONFIG_MAPS.ref("b", namespace), config_map("b"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(audience.listen(client, Selection(namespace, labels="app=a"), QUICK))
        await audience.until(lambda: audience.count(Synced) == 1)
        assert set(audience.known) == {"a"}
        await client.merge_patch(CONFIG_MAPS.ref("a", namespace), {"metadata": {"labels": {"app": "other"}}})
        await audience.until(lambda: not audience.known)
        await client.merge_patch(CONFIG_MAPS.ref("b", namespace), {"metadata": {"labels": {"app": "a"}}})
        await audience.until(lambda: set(audience.known) == {"b"})
        task.cancel()


async def test_objects_longer_than_any_buffer_arrive(client: Client, namespace: str, audience: Audience) -> None:
    """A line of a megabyte is one event."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(audience.listen(client, Selection(namespace), QUICK))
        await audience.until(lambda: audience.count(Synced) == 1)
        await client.create(CONFIG_MAPS, config_map("big", text="x" * 900_000), namespace=namespace)
        await audience.until(lambda: len(audience.data().get("big", {}).get("text", "")) == 900_000)
        task.cancel()


async def test_a_stream_that_ends_is_resumed(client: Client, namespace: str, audience: Audience) -> None:
    """The server ends each stream after its time; the next one goes on without a new listing."""
    async with asyncio.TaskGroup() as group:
        options = WatchOptions(stream_life=1, first_wait=0.02, longest_wait=0.2)
        task = group.create_task(audience.listen(client, Selection(namespace), options))
        for number in range(8):
            await client.apply(CONFIG_MAPS.ref(f"n{number}", namespace), config_map(f"n{number}"))
            await audience.until(lambda number=number: f"n{number}" in audience.known)
            await asyncio.sleep(0.3)  # time is what ends the streams here
        task.cancel()
    assert audience.count(Synced) == 1
    assert audience.told_once()


async def test_a_silent_server_is_asked_again(client: Client, namespace: str, audience: Audience) -> None:
    """Silence alone isn't told as an interruption: the stream is opened anew and nothing is missed."""
    async with asyncio.TaskGroup() as group:
        options = WatchOptions(silence=0.3, first_wait=0.02, longest_wait=0.05)
        task = group.create_task(audience.listen(client, Selection(namespace), options))
        await audience.until(lambda: audience.count(Synced) == 1)
        await asyncio.sleep(1)  # silence is what is tested
        await client.apply(CONFIG_MAPS.ref("a", namespace), config_map("a"))
        await audience.until(lambda: "a" in audience.known)
        task.cancel()
    assert audience.count(Interrupted) == 0


async def test_field_selectors_hold_for_listing_and_stream(client: Client, namespace: str, audience: Audience) -> None:
    """A watch of one name hears of no other."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(audience.listen(client, Selection(namespace, fields="metadata.name=b"), QUICK))
        await audience.until(lambda: audience.count(Synced) == 1)
        for name in ("a", "b", "c"):
            await client.apply(CONFIG_MAPS.ref(name, namespace), config_map(name))
        await audience.until(lambda: bool(audience.known))
        await client.delete(CONFIG_MAPS.ref("b", namespace))
        await audience.until(lambda: not audience.known)
        task.cancel()
    assert [event.object.metadata.name for event in audience.events if isinstance(event, Changed)] == ["b"]


class Recording(Client):
    """A client that remembers from where each stream was opened."""

    positions: tuple[str, ...] = ()

    def stream(self, path: str, action: str, query: Mapping[str, str], *, silence: float) -> Any:
        self.positions = (*self.positions, query["resourceVersion"])
        return super().stream(path, action, query, silence=silence)


async def test_bookmarks_move_the_place_to_resume_from(
    cluster: LocalCluster, client: Client, namespace: str, audience: Audience
) -> None:
    """A watch that hears of nothing still keeps up with the server's history."""
    async with Recording(kubeconfig(cluster.kubeconfig)) as recording, asyncio.TaskGroup() as group:
        options = WatchOptions(stream_life=4, first_wait=0.02)
        task = group.create_task(audience.listen(recording, Selection(namespace, labels="app=none"), options))
        await audience.until(lambda: audience.count(Synced) == 1)
        await client.apply(CONFIG_MAPS.ref("other", namespace), config_map("other"))

        # A bookmark may come before the write, so the first stream to be opened again need not be further on.
        await until(lambda: int(recording.positions[-1]) > int(recording.positions[0]))
        task.cancel()
    assert audience.count(Synced) == 1
    assert audience.count(Changed) == 0


async def test_what_trying_again_cannot_mend_is_raised(client: Client, namespace: str) -> None:
    """Who may not list, or asks for a kind that isn't served, is told once a start-up would be over."""
    soon = WatchOptions(start_up=0.3, first_wait=0.05)
    nobody = client.impersonating(Identity.service_account(namespace, "nobody"))
    told = []
    with pytest.raises(Forbidden, match=f"list ConfigMap in {namespace}"):
        told += [event async for event in watch(nobody, CONFIG_MAPS, ConfigMap, Selection(namespace), soon)]
    nothing = Resource("no.example", "v1", "No", "nos", namespaced=True)
    with pytest.raises(NotServed):
        told += [event async for event in watch(client, nothing, ConfigMap, EVERYTHING, soon)]
    assert told == []


async def test_a_watch_may_begin_before_its_server(fragile: LocalCluster, audience: Audience) -> None:
    """While the server is away or starting, the watch says so and goes on trying; then it tells what is there."""
    kill(fragile)
    async with Client(kubeconfig(fragile.kubeconfig)) as client, asyncio.TaskGroup() as group:
        task = group.create_task(audience.listen(client, Selection("default"), QUICK))
        await audience.until(lambda: audience.count(Interrupted) >= 1)
        await revive(fragile)
        await audience.until(lambda: audience.count(Synced) == 1)
        task.cancel()
    assert audience.count(Resumed) == 1


@asynccontextmanager
async def behind_a_cut(cluster: LocalCluster, audience: Audience) -> AsyncIterator[tuple[Client, Relay]]:
    """Changes of every kind while a watch is cut off; the block mends that, and then all has been told, once."""
    async with (
        Relay(cluster.port) as relay,
        Client(kubeconfig(cluster.kubeconfig)) as direct,
        Client(through(cluster, relay.port)) as client,
        asyncio.TaskGroup() as group,
    ):
        await _set_up(direct)
        task = group.create_task(audience.listen(client, Selection("default", labels="app"), QUICK))
        await audience.until(lambda: audience.count(Synced) == 1)
        relay.cut()
        await audience.until(lambda: audience.count(Interrupted) >= 1)
        before = len(audience.events)
        await _change_behind(direct)
        yield direct, relay
        await audience.until(lambda: audience.data() == AFTER)
        task.cancel()
    later = [event for event in audience.events[before:] if isinstance(event, Changed)]
    assert "kept" not in {event.object.metadata.name for event in later}
    assert audience.told_once()


async def test_changes_during_a_cut_are_told_after_it(fragile: LocalCluster, audience: Audience) -> None:
    """After a cut the stream resumes without a new listing, and the server tells the deletions as they were."""
    async with behind_a_cut(fragile, audience) as (_, relay):
        await relay.mend()
        await audience.until(lambda: audience.count(Resumed) == 1)
    assert audience.count(Synced) == 1
    deleted = [event for event in audience.events if isinstance(event, Deleted)]
    assert {event.name for event in deleted} == {"deleted", "recreated"}
    assert all(event.object is not None for event in deleted)


async def test_forgotten_history_means_a_new_listing(fragile: LocalCluster, audience: Audience) -> None:
    """With etcd compacted and the server's own memory gone, a new listing finds every change and deletion."""
    async with behind_a_cut(fragile, audience) as (direct, relay):
        last = await direct.apply(CONFIG_MAPS.ref("unrelated", "kube-system"), config_map("unrelated"))
        await compact(fragile, int(last.decode(ConfigMap).metadata.resource_version))
        kill(fragile)
        await revive(fragile)
        await relay.mend()
        await audience.until(lambda: audience.count(Synced) == 2)
    deleted = [event for event in audience.events if isinstance(event, Deleted)]
    assert {event.name for event in deleted} == {"deleted", "recreated"}
    assert all(event.object is None for event in deleted), "found by listing, not told by the server"


AFTER = {"kept": {"v": "1"}, "changed": {"v": "2"}, "recreated": {"v": "3"}, "added": {"v": "4"}}


async def _set_up(direct: Client) -> None:
    for name in ("kept", "changed", "deleted", "recreated"):
        await direct.apply(CONFIG_MAPS.ref(name, "default"), config_map(name, v="1"))
    with suppress(NotFound):
        await direct.delete(CONFIG_MAPS.ref("added", "default"))


async def _change_behind(direct: Client) -> None:
    """Every kind of change, on four objects."""
    await direct.apply(CONFIG_MAPS.ref("changed", "default"), config_map("changed", v="2"))
    await direct.delete(CONFIG_MAPS.ref("deleted", "default"))
    await direct.delete(CONFIG_MAPS.ref("recreated", "default"))
    await direct.apply(CONFIG_MAPS.ref("recreated", "default"), config_map("recreated", v="3"))
    await direct.apply(CONFIG_MAPS.ref("added", "default"), config_map("added", v="4"))


class Forgetful(Client):
    """A client that has something done after the first page of its first listing."""

    def __init__(self, source: AccessSource, after_first_page: Callable[[], Awaitable[None]]) -> None:
        super().__init__(source)
        self._after_first_page: Callable[[], Awaitable[None]] | None = after_first_page

    async def pages(self, *args: Any, **options: Any) -> AsyncIterator[Listing[Any]]:
        async for page in super().pages(*args, **options):
            yield page
            if self._after_first_page is not None:
                act, self._after_first_page = self._after_first_page, None
                await act()


async def test_a_listing_that_the_server_forgot_starts_over(fragile: LocalCluster) -> None:
    """Pages of a forgotten listing are Gone; `list` begins again and gives everything, once."""
    here = Selection("kube-public")

    async def forget() -> None:
        last = await client.apply(CONFIG_MAPS.ref("page9", "kube-public"), config_map("page9"))
        await compact(fragile, int(last.decode(ConfigMap).metadata.resource_version))
        kill(fragile)
        await revive(fragile)

    async with Forgetful(kubeconfig(fragile.kubeconfig), forget) as client:
        for number in range(6):
            await client.apply(CONFIG_MAPS.ref(f"page{number}", "kube-public"), config_map(f"page{number}"))
        stale = Client(kubeconfig(fragile.kubeconfig))
        pages = stale.pages(CONFIG_MAPS, ConfigMap, here, page_size=2)
        await anext(pages)
        listing = await client.list(CONFIG_MAPS, ConfigMap, here, page_size=2)
        names = [item.metadata.name for item in listing.items if item.metadata.name.startswith("page")]
        assert names == [*(f"page{number}" for number in range(6)), "page9"]
        with pytest.raises(Gone, match="list ConfigMap in kube-public"):
            await anext(pages)
        await stale.close()


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(2 * ROUNDS))
async def test_killed_servers_lose_no_change(fragile: LocalCluster, audience: Audience, seed: int) -> None:
    """With the API server killed at random moments of random changes, the watch ends up knowing what is."""
    chance = random.Random(seed)
    async with Client(kubeconfig(fragile.kubeconfig)) as client:
        space = f"chaos-{seed}"
        namespaces = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
        await client.apply(
            namespaces.ref(space), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(audience.listen(client, Selection(space), QUICK))
            await audience.until(lambda: audience.count(Synced) == 1)
            for _ in range(3):
                writes = group.create_task(_scribble(client, space, chance))
                await asyncio.sleep(chance.uniform(0, 0.5))  # the moment is what varies
                kill(fragile)
                await writes
                await revive(fragile)
            truth = await _truth(client, space)
            await audience.until(lambda: audience.data() == truth)
            task.cancel()
    assert audience.told_once()


async def _scribble(client: Client, namespace: str, chance: random.Random) -> None:
    """Random creations, changes and deletions until the server doesn't answer."""
    with suppress(KubeError):
        for _ in range(2_000):
            ref = CONFIG_MAPS.ref(f"n{chance.randrange(20)}", namespace)
            if chance.random() < 0.3:
                with suppress(NotFound):
                    await client.delete(ref)
            else:
                body = config_map(ref.name, v=str(chance.randrange(1_000)))
                await client.apply(ref, body)


async def _truth(client: Client, namespace: str) -> dict[str, dict[str, str]]:
    listing = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace))
    return {item.metadata.name: item.data for item in listing.items}
