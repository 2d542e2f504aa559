"""An Informer knows what exists of a kind, through deletions, lost connections and restarts, and learns from writes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from starling.kube import Client, Forbidden, Identity, Selection, Unreachable, WatchOptions, kubeconfig
from starling.local import LocalCluster
from starling.runtime import Controller, Group, Informer, Key
from tests.integration.clusters import kill, revive, running, through
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap, config_map
from tests.integration.relay import Relay
from tests.waiting import until

QUICK = WatchOptions(first_wait=0.02, longest_wait=0.2)
Told = list[tuple[dict[str, str] | None, dict[str, str] | None]]


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of this file's own, to be killed."""
    with running(tmp_path_factory.mktemp("fragile"), "fragile") as cluster:
        yield cluster


def of(client: Client, namespace: str, options: WatchOptions = QUICK) -> Informer[ConfigMap]:
    """An informer of a namespace's ConfigMaps."""
    return Informer(client, CONFIG_MAPS, ConfigMap, Selection(namespace), options)


@asynccontextmanager
async def followed(informer: Informer[ConfigMap]) -> AsyncIterator[Told]:
    """The informer at work and in sync while the block runs, and the data of what it told."""
    told: Told = []
    informer.listen(lambda before, after: told.append((before.data if before else None, after.data if after else None)))
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(60):
            await informer.synced()
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def put(client: Client, namespace: str, name: str, **data: str) -> ConfigMap:
    """Write a ConfigMap; the server's answer."""
    return (await client.apply(CONFIG_MAPS.ref(name, namespace), config_map(name, **data))).decode(ConfigMap)


async def test_what_exists_then_changes_and_deletions(client: Client, namespace: str) -> None:
    """The view follows, and each change is told with what was before."""
    await put(client, namespace, "a", x="1")
    informer = of(client, namespace)
    assert not informer.ready
    async with followed(informer) as told:
        assert informer.ready
        assert told == [(None, {"x": "1"})]
        view = informer.items()
        await put(client, namespace, "a", x="2")
        await put(client, namespace, "b", y="1")
        await until(lambda: len(informer) == 2)
        await client.delete(CONFIG_MAPS.ref("a", namespace))
        await until(lambda: informer.get(Key(namespace, "a")) is None)
        assert told == [(None, {"x": "1"}), ({"x": "1"}, {"x": "2"}), (None, {"y": "1"}), ({"x": "2"}, None)]
        assert [item.metadata.name for item in view] == ["b"]
        assert informer.trouble is None


async def test_who_listens_late_is_told_what_is_there(client: Client, namespace: str) -> None:
    """And one listener's mistake is not the others' loss."""
    await put(client, namespace, "a", x="1")
    informer = of(client, namespace)
    late: list[str] = []

    def mistaken(_: object, __: object) -> None:
        raise ZeroDivisionError

    async with followed(informer) as told:
        informer.listen(mistaken)
        informer.listen(lambda _, after: late.append(after.metadata.name if after else "gone"))
        assert late == ["a"]
        await client.delete(CONFIG_MAPS.ref("a", namespace))
        await until(lambda: late == ["a", "gone"])
        assert told[-1] == ({"x": "1"}, None)


async def test_a_write_is_known_before_the_watch_tells(cluster: LocalCluster, client: Client, namespace: str) -> None:
    """While the watch is cut off; when it is back, nothing is told twice and nothing goes back."""
    await put(client, namespace, "old", x="1")
    async with Relay(cluster.port) as relay, Client(through(cluster, relay.port)) as behind:
        informer = of(behind, namespace)
        async with followed(informer) as told:
            relay.cut()
            await put(client, namespace, "old", x="2")
            informer.learn(await put(client, namespace, "old", x="3"))
            stale = await put(client, namespace, "new", y="1")
            informer.learn(await put(client, namespace, "new", y="2"))
            informer.learn(stale)
            expected: Told = [(None, {"x": "1"}), ({"x": "1"}, {"x": "3"}), (None, {"y": "2"})]
            assert told == expected
            await until(lambda: isinstance(informer.trouble, Unreachable))
            await relay.mend()
            await until(lambda: informer.trouble is None)
            await put(client, namespace, "last", z="1")
            await until(lambda: informer.get(Key(namespace, "last")) is not None)
            assert told == [*expected, (None, {"z": "1"})]
            assert informer.interruptions > 0


async def test_an_answer_that_comes_after_the_deletion_is_no_news(client: Client, namespace: str) -> None:
    """The watch has told that it is gone: it stays gone; one made anew is another matter."""
    informer = of(client, namespace)
    async with followed(informer):
        answer = await put(client, namespace, "a", x="1")
        await client.delete(CONFIG_MAPS.ref("a", namespace))
        await put(client, namespace, "b")
        await until(lambda: informer.get(Key(namespace, "b")) is not None)
        informer.learn(answer)
        assert informer.get(Key(namespace, "a")) is None
        informer.learn(await put(client, namespace, "a", x="2"))
        assert len(informer) == 2


async def test_it_survives_the_api_server(fragile: LocalCluster) -> None:
    """While it is away, that is said and what is known stays; what is changed or deleted when it is back is told."""
    async with Client(kubeconfig(fragile.kubeconfig)) as client:
        for name in ("kept", "changed", "deleted"):
            await put(client, "default", name, x="1")
        informer = of(client, "default")
        async with followed(informer) as told:
            before = len(informer)
            told.clear()
            kill(fragile)
            await until(lambda: informer.trouble is not None)
            assert len(informer) == before
            await revive(fragile)
            await put(client, "default", "changed", x="2")
            await client.delete(CONFIG_MAPS.ref("deleted", "default"))
            await until(lambda: informer.get(Key("default", "deleted")) is None)
            await until(lambda: informer.trouble is None)
            assert told == [({"x": "1"}, {"x": "2"}), ({"x": "1"}, None)]


async def test_what_can_not_be_followed_ends_the_group(client: Client, namespace: str) -> None:
    """With the server's own words, and before any controller began."""
    nobody = client.impersonating(Identity("nobody"))
    group = Group("test")
    informer = group.informer(of(nobody, namespace, WatchOptions(start_up=0.0)))
    began: list[str] = []

    async def work() -> None:
        began.append("work")

    group.task(work)
    with pytest.raises(Forbidden):
        await asyncio.wait_for(group.run(), 60)
    assert (began, informer.ready, group.ready) == ([], False, False)


async def test_controllers_begin_when_everything_is_known(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    """Keys may be added before; the first reconcile finds all informers in sync."""
    await put(client, namespace, "a", x="1")
    async with Relay(cluster.port) as relay, Client(through(cluster, relay.port)) as behind:
        relay.cut()
        group = Group("test")
        quick = group.informer(of(client, namespace))
        slow = group.informer(of(behind, namespace))
        seen: list[tuple[Key, bool]] = []

        async def reconcile(key: Key) -> None:
            seen.append((key, group.ready))

        controller = group.controller(Controller("test", reconcile))
        quick.listen(lambda _, after: controller.add(Key(namespace, after.metadata.name)) if after else None)
        running = asyncio.create_task(group.run())
        await until(lambda: quick.ready and slow.trouble is not None)
        assert seen == []
        await relay.mend()
        await until(lambda: bool(seen))
        assert seen == [(Key(namespace, "a"), True)]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_what_failed_is_tried_again_when_the_server_is_back(cluster: LocalCluster, namespace: str) -> None:
    """Not only when its own time has come, which may be minutes later."""
    async with Relay(cluster.port) as relay, Client(through(cluster, relay.port)) as client:
        group = Group("test")
        informer = group.informer(of(client, namespace))
        done: list[Key] = []

        async def reconcile(key: Key) -> None:
            await client.once().raw("GET", "/version")
            done.append(key)

        controller = group.controller(Controller("test", reconcile, first_retry=3600, longest_retry=3600))
        running = asyncio.create_task(group.run())
        await until(lambda: informer.ready)
        relay.cut()
        controller.add(Key(namespace, "a"))
        await until(lambda: controller.failing == 1 and informer.trouble is not None)
        await relay.mend()
        await until(lambda: done == [Key(namespace, "a")])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
