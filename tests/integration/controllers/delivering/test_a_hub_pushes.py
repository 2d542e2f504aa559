"""Push: each cluster by its own connection, what is wrong with it told in Presence, others unharmed."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from starling.controllers.presence import Presence, Seen
from starling.runtime import Key
from tests.integration.controllers.delivering.conftest import NAMESPACES
from tests.integration.controllers.delivering.world import World, entry
from tests.integration.relay import Relay
from tests.waiting import until


def seen(presence: Presence, world: World, cluster: str = "c") -> Seen:
    """What is known of a cluster."""
    return presence.get(Key(world.namespace, cluster)) or Seen()


def elsewhere(world: World, port: int) -> bytes:
    """The cluster's kubeconfig by way of another port."""
    data = yaml.safe_load(world.downstream_cluster.kubeconfig.read_text())
    data["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return json.dumps(data).encode()


def _port(world: World) -> int:
    """The cluster's own."""
    data = yaml.safe_load(world.downstream_cluster.kubeconfig.read_text())
    return int(data["clusters"][0]["cluster"]["server"].rpartition(":")[2])


@contextmanager
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_cluster_is_seen_for_what_it_is(world: World) -> None:
    """Presence has uid and version of the cluster, and of the agent what the Assemblage tells."""
    await world.add_push()
    await world.propose(entry("base"))
    async with world.pushing() as presence:
        await until(lambda: seen(presence, world).reachable is True)
        kube_system = (await world.downstream.raw("GET", "/api/v1/namespaces/kube-system")).json()["metadata"]["uid"]
        assert seen(presence, world).uid == kube_system
        assert seen(presence, world).kubernetes_version.startswith("v1.")
        await world.runs("base")
        await world.stands()
        await until(lambda: seen(presence, world).agent_version == "9.9")


async def test_a_dead_or_silent_cluster_holds_up_none(world: World) -> None:
    """With clusters that don't answer, or never say a word, another gets what it should; the dead one is lost."""
    with silent() as port:
        await world.add_push("silent", kubeconfig_text=elsewhere(world, port))
        await world.add_push("dead", kubeconfig_text=elsewhere(world, 1))
        await world.add_push()
        for name in ("silent", "dead", "c"):
            await world.propose(entry("base"), cluster=name)
        async with world.pushing(lost_after=0.5) as presence:
            await world.runs("base")
            await until(lambda: seen(presence, world, "dead").reachable is False)
            assert "127.0.0.1:1" in seen(presence, world, "dead").why
            assert seen(presence, world, "silent").reachable is not True


async def test_a_cluster_that_goes_away_is_lost_and_found_again(world: World) -> None:
    """Its connection's end is noticed by itself; when it is back, what changed meanwhile arrives."""
    async with Relay(_port(world)) as relay:
        await world.add_push(kubeconfig_text=elsewhere(world, relay.port))
        await world.propose(entry("base"))
        async with world.pushing(lost_after=0.5) as presence:
            await world.runs("base")
            await world.stands()
            await until(lambda: seen(presence, world).reachable is True)
            relay.cut()
            await until(lambda: seen(presence, world).reachable is False)
            await world.propose(entry("base"), entry("mesh"))
            await relay.mend()
            await world.runs("base", "mesh")
            await world.stands()
            await until(lambda: seen(presence, world).reachable is True)


async def test_a_connection_that_breaks_is_no_news(world: World) -> None:
    """A cluster that is there again before it counts as lost has been there all the time, as far as Presence tells."""
    async with Relay(_port(world)) as relay:
        await world.add_push(kubeconfig_text=elsewhere(world, relay.port))
        await world.propose(entry("base"))
        async with world.pushing() as presence:
            await world.runs("base")
            await world.stands()
            await until(lambda: seen(presence, world).agent_version == "9.9")
            before, told = seen(presence, world).last_seen, list[Key]()
            presence.listen(told.append)
            relay.cut()
            await world.propose(entry("base"), entry("mesh"))
            await relay.mend()
            await world.runs("base", "mesh")
            await until(lambda: seen(presence, world).last_seen != before)
            assert told == []


async def test_an_agent_that_does_not_answer_makes_its_cluster_lost(world: World) -> None:
    """A cluster whose Assemblage nobody looks at is lost though its server answers, and back when someone does."""
    await world.add_push()
    await world.propose(entry("base"))
    async with world.pushing(lost_after=0.5) as presence:
        await world.runs("base")
        await until(lambda: "its agent doesn't answer" in seen(presence, world).why)
        assert seen(presence, world).reachable is False
        await world.stands()
        await until(lambda: seen(presence, world).reachable is True)
        await world.adopt()
        await world.follows()
        await until(lambda: seen(presence, world).reachable is False)


async def test_what_the_cluster_itself_refuses_is_told_at_once(world: World) -> None:
    """Credentials that aren't taken won't be later on, and waiting for that would only hide it."""
    data = yaml.safe_load(world.downstream_cluster.kubeconfig.read_text())
    data["users"][0]["user"] = {"token": "nobody"}
    await world.add_push(kubeconfig_text=json.dumps(data).encode())
    await world.propose(entry("base"))
    async with world.pushing() as presence:
        await until(lambda: seen(presence, world).reachable is False)


async def test_another_kubeconfig_reconnects(world: World) -> None:
    """A Secret that can't be used is said to be so, and a good one in its place is used at once."""
    await world.add_push(kubeconfig_text=b"no: kubeconfig\n")
    await world.propose(entry("base"))
    async with world.pushing() as presence:
        await until(lambda: "isn't a kubeconfig" in seen(presence, world).why)
        bad = yaml.safe_load(world.downstream_cluster.kubeconfig.read_text())
        bad["clusters"][0]["cluster"] |= {"insecure-skip-tls-verify": True}
        await world.add_push(kubeconfig_text=json.dumps(bad).encode())
        await until(lambda: "insecure-skip-tls-verify" in seen(presence, world).why)
        assert await world.local() is None
        await world.add_push()
        await world.runs("base")


async def test_a_missing_namespace_is_said_to_be_missing(world: World) -> None:
    """The cluster can't be used until someone makes the namespace; that is told with the command, then it goes on."""
    name = f"{world.namespace}-hub-only"
    await world.hub.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    only = World(world.hub, world.downstream, name, world.hub_cluster, world.downstream_cluster)
    await only.add_push()
    await only.propose(entry("base"))
    async with only.pushing() as presence:
        await until(lambda: f"there is no namespace {name}" in seen(presence, only).why)
        assert f"kubectl create namespace {name}" in seen(presence, only).why
        assert seen(presence, only).reachable is False
        await world.downstream.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await only.runs("base")
        await until(lambda: seen(presence, only).reachable is True)
