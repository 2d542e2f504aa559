"""What is wrong with a unit's input is said with its place, and does no harm: not to the unit, not to others."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from starling.engine import ClusterAccess, Limits, Readiness, UnitStatus
from starling.kube import AccessSource
from starling.local import LocalCluster
from tests.integration.clusters import through
from tests.integration.engine.edits import CRDS
from tests.integration.engine.kinds import OwnKind, own_kind
from tests.integration.engine.scene import HOUR, Scene, config_map, key_of
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.traffic import traffic as traffic_of
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.integration.relay import Relay
from tests.waiting import until

NEVER = Limits(first_retry=HOUR, longest_retry=HOUR)
MANY = 12

# Manifests

GOOD = "{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}\n---\n"
WRONG = {
    "not YAML": (GOOD + "a: [\n", "test.yaml:"),
    "no kind": (GOOD + "apiVersion: v1\nmetadata: {name: b}\n", "test.yaml:3 (document 2): kind is missing"),
    "no name": (GOOD + "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "test.yaml:3 (document 2): ConfigMap has no"),
    "one object twice": (GOOD + GOOD, "test.yaml:3 (document 2): ConfigMap new is also at test.yaml:1 (document 1)"),
    "one object twice, once it is placed": (
        GOOD + "{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: other}}\n",
        "test.yaml:3 (document 2): ConfigMap ",
    ),
    "a Secret of numbers": (
        GOOD + "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {pin: 1}}\n",
        'test.yaml:3 (document 2): stringData["pin"] of Secret s is not text',
    ),
    "a Secret that isn't encoded": (
        GOOD + "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {pin: hunter2!}}\n",
        'test.yaml:3 (document 2): data["pin"] of Secret s is not base64',
    ),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_set_that_can_not_be_read_changes_nothing(scene: Scene, traffic: Traffic, what: str) -> None:
    """Nothing applied, nothing pruned; file, document and line are told; mended, all goes on."""
    unit = scene.render("web", config_map("old"), config_map("stays"))
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        text, place = WRONG[what]
        scene.unread[unit] = text
        engine.refresh(unit)
        status = await scene.until(unit, lambda status: status.problems)
        assert status.readiness is Readiness.FAILED
        assert status.message.startswith(place), status.message
        assert traffic.writes() == []
        assert await scene.names() == {"old", "stays"}
        del scene.unread[unit]
        scene.render("web", config_map("stays"), config_map("new"))
        await scene.synced(unit)
        assert await scene.names() == {"stays", "new"}


# Kinds


@pytest.fixture
async def kind(scene: Scene) -> AsyncIterator[OwnKind]:
    """A kind that nobody serves yet."""
    async with own_kind(scene.client, f"{scene.namespace}.test") as kind:
        yield kind


async def test_an_unknown_kind_fails_alone(scene: Scene, kind: OwnKind) -> None:
    """It is named with its place; the rest of its wave goes on, the next wave and prunes wait until it is there."""
    unit = scene.render("web", config_map("old"), config_map("stays"))
    async with running_engine(scene):
        await scene.synced(unit)
        later = in_wave(1, config_map("later"))
        scene.render("web", config_map("stays"), kind.widget("w"), config_map("rest"), later)
        status = await scene.until(unit, lambda status: status.problems)
        [problem] = status.problems
        assert problem.reason == "UnknownKind"
        assert problem.message.startswith("test.yaml:3 (document 2): Widget.")
        assert problem.key == key_of(kind.widget("w"), "")
        assert await scene.names() == {"old", "stays", "rest"}
        await scene.client.apply(CRDS.ref(f"widgets.{kind.group}"), kind.crd(), manager="someone")
        await scene.synced(unit)
        assert await scene.names() == {"stays", "rest", "later"}
        assert await scene.live("w", kind.resource)


async def test_a_kind_that_another_unit_brings_is_there_at_once(scene: Scene, kind: OwnKind) -> None:
    """Though the next try would be in an hour."""
    unit = scene.render("web", kind.widget("w"), config_map("rest"))
    async with running_engine(scene, limits=NEVER):
        await scene.until(unit, lambda status: status.problems)
        bringer = scene.render("kinds", kind.crd())
        await scene.synced(bringer, unit)
        assert await scene.live("w", kind.resource)


async def test_a_kind_that_goes_takes_its_objects_along(scene: Scene, kind: OwnKind) -> None:
    """They aren't pruned from the manifests' point of view: back with the kind, they are made anew."""
    unit = scene.render("web", kind.widget("w"), config_map("rest"))
    await scene.client.apply(CRDS.ref(f"widgets.{kind.group}"), kind.crd(), manager="someone")
    async with running_engine(scene):
        await scene.synced(unit)
        await scene.client.delete(CRDS.ref(f"widgets.{kind.group}"))
        await scene.until(unit, lambda status: status.problems)
        assert await scene.names() == {"rest"}
        await scene.client.apply(CRDS.ref(f"widgets.{kind.group}"), kind.crd(), manager="someone")
        await scene.synced(unit)
        assert await scene.live("w", kind.resource)


# Clusters


@pytest.fixture
async def relay(cluster: LocalCluster) -> AsyncIterator[Relay]:
    """A way to the cluster that breaks on command."""
    async with Relay(cluster.port) as relay:
        yield relay


@pytest.fixture
async def silent(cluster: LocalCluster) -> AsyncIterator[AccessSource]:
    """An address where someone listens and says nothing."""
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: writers.append(writer), "127.0.0.1", 0)
    yield through(cluster, server.sockets[0].getsockname()[1])
    server.close()
    for writer in writers:
        writer.transport.abort()


def on(scene: Scene, cluster: str, name: str, **data: str) -> str:
    """A unit on a cluster, with one object of that name."""
    return scene.render(f"test/{scene.namespace}/Sync.{name}@{cluster}", config_map(name, **data), interval=HOUR)


def is_away(status: UnitStatus) -> bool:
    """Whether the unit's cluster is said to be unreachable."""
    return status.readiness is Readiness.UNKNOWN and "127.0.0.1" in status.message


async def test_a_dead_cluster_holds_up_nobody(
    scene: Scene, cluster: LocalCluster, relay: Relay, silent: AccessSource
) -> None:
    """Its many units are Unknown with the cause, whether it refuses or says nothing; others go on with one worker."""
    scene.others["dead"] = ClusterAccess(through(cluster, relay.port))
    scene.others["silent"] = ClusterAccess(silent)
    relay.cut()
    mute = [on(scene, "silent", f"mute-{number}") for number in range(MANY)]
    dead = [on(scene, "dead", f"dead-{number}") for number in range(MANY)]
    nowhere = on(scene, "nowhere", "nowhere")
    async with running_engine(scene, processors=1):
        living = on(scene, "here", "living")
        await scene.synced(living)
        for unit in dead:
            await scene.until(unit, is_away)
        await scene.until(nowhere, lambda status: "there is no cluster nowhere" in status.message)
        assert all(scene.status(unit).readiness is Readiness.UNKNOWN for unit in mute)
        on(scene, "here", "living", x="2")
        await scene.synced(living)
        await relay.mend()
        await scene.synced(*dead)


async def test_a_cluster_that_goes_away_is_waited_for(scene: Scene, cluster: LocalCluster, relay: Relay) -> None:
    """Its units are Unknown and forget nothing; what changed meanwhile is brought when it is back."""
    scene.others["dead"] = ClusterAccess(through(cluster, relay.port))
    dead = [on(scene, "dead", f"dead-{number}") for number in range(MANY)]
    living = on(scene, "here", "living")
    async with running_engine(scene, processors=1):
        await scene.synced(*dead, living)
        records = {unit: scene.status(unit).inventory for unit in dead}
        relay.cut()
        for number, unit in enumerate(dead):
            on(scene, "dead", f"dead-{number}", x="2")
            await scene.until(unit, is_away)
            assert scene.status(unit).inventory == records[unit]
        on(scene, "here", "living", x="2")
        await scene.synced(living)
        await relay.mend()
        await scene.synced(*dead)
        assert await scene.data("dead-3") == {"x": "2"}


async def test_a_restart_while_it_is_away_forgets_nothing(scene: Scene, cluster: LocalCluster, relay: Relay) -> None:
    """The record is what it was: an object that left the manifests meanwhile is pruned when the cluster is back."""
    scene.others["dead"] = ClusterAccess(through(cluster, relay.port))
    unit = f"test/{scene.namespace}/Sync.web@dead"
    scene.render(unit, config_map("stays"), config_map("old"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
    record = scene.status(unit)
    relay.cut()
    scene.render(unit, config_map("stays"), interval=HOUR)
    for _ in range(2):
        async with running_engine(scene):
            away = await scene.until(unit, is_away)
            assert (away.inventory, away.baseline, away.operation) == (
                record.inventory, record.baseline, record.operation,
            )  # fmt: skip
    await relay.mend()
    async with running_engine(scene):
        await scene.synced(unit)
    assert await scene.names() == {"stays"}


async def test_other_access_makes_a_unit_well_again(scene: Scene, cluster: LocalCluster, relay: Relay) -> None:
    """Someone corrects the cluster's address: its units don't stay Unknown, and nothing is written to it."""
    scene.others["dead"] = ClusterAccess(through(cluster, relay.port), "1")
    unit = on(scene, "dead", "web")
    async with running_engine(scene):
        await scene.synced(unit)
        relay.cut()
        await scene.until(unit, is_away)
        async with traffic_of(cluster) as traffic:
            scene.others["dead"] = ClusterAccess(traffic.access, "2")
            scene.clusters_changed.put_nowait("dead")
            await scene.synced(unit)
            assert traffic.writes() == []
            on(scene, "dead", "web", x="2")
            await scene.synced(unit)
            assert [each.name for each in traffic.writes()] == ["web"]


async def test_a_cluster_that_falls_silent_in_the_middle_holds_up_nobody(scene: Scene, cluster: LocalCluster) -> None:
    """With one worker, a write that gets no answer doesn't keep others from being synced."""
    async with traffic_of(cluster) as traffic:
        scene.others["mute"] = ClusterAccess(traffic.access)
        traffic.answers.clear()
        mute = on(scene, "mute", "mute")
        async with running_engine(scene, processors=1):
            await until(lambda: bool(traffic.writes()))
            living = on(scene, "here", "living")
            await scene.synced(living)
            assert not scene.done(mute)
