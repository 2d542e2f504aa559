"""An agent's connection to its hub: what it says of itself, its heartbeat, its token, and what people read of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from starling import __version__
from starling.aio import SystemClock
from starling.api import Cluster, Upstream
from starling.api.enrolment import account_name, revoked
from starling.controllers.heartbeat import LEASES
from starling.controllers.presence import CLUSTER_LABEL, ClusterLease, LeaseWatch, Presence
from starling.controllers.tokens import expires_at, request_token, token_in
from starling.kube import Client, Selection
from starling.runtime import Group, Informer, Key
from tests.integration.controllers.delivering.world import World, entry, found, ran
from tests.integration.engine.traffic import traffic
from tests.integration.relay import Relay
from tests.waiting import until

CLUSTERS = Cluster.declaration.resource


async def cluster(world: World) -> Cluster:
    """The Cluster on the hub."""
    return (await world.hub.get(CLUSTERS.ref("c", world.namespace))).decode(Cluster)


async def test_it_says_what_it_is_and_which_labels_it_asks_for(world: World) -> None:
    """Cluster/status has versions, uid and the labels asked for; its labels are the hub's decision."""
    await world.dial_in(await world.enrol(), zone="b", ring="prod")
    async with world.pulling():
        ready = await world.ready("Connected")

        async def announced() -> Cluster | None:
            told = await cluster(world)
            return told if told.status.uid else None

        told = await found(announced)
    kube_system = (await world.downstream.raw("GET", "/api/v1/namespaces/kube-system")).json()["metadata"]["uid"]
    assert told.status.uid == kube_system
    assert told.status.kubernetes_version.startswith("v1.")
    assert told.status.agent_version == __version__
    assert told.status.requested_labels == {"zone": "b", "ring": "prod"}
    assert told.metadata.labels == {"ring": "canary"}
    assert ready.status.token_expires is not None
    assert ready.status.last_contact is not None


async def test_its_heartbeat_shows_that_it_is_there(world: World) -> None:
    """The Lease is renewed, and a hub that watches it sees the cluster; when it stops, the cluster is lost."""
    await world.dial_in(await world.enrol())
    presence, group = Presence(), Group("hub")
    selection = Selection(world.namespace, labels=CLUSTER_LABEL)
    LeaseWatch(presence).join(group, group.informer(Informer(world.hub, LEASES, ClusterLease, selection)))
    key = Key(world.namespace, "c")

    def reachable(expected: bool | None) -> bool:
        seen = presence.get(key)
        return (seen.reachable if seen is not None else None) is expected

    async with ran(group):
        assert reachable(None)
        async with world.pulling(heartbeat=0.5):
            await until(lambda: reachable(True))
        await until(lambda: reachable(False))
    lease = (await world.hub.get(LEASES.ref("starling-cluster-c", world.namespace))).json()["spec"]
    kube_system = (await world.downstream.raw("GET", "/api/v1/namespaces/kube-system")).json()["metadata"]["uid"]
    assert lease["holderIdentity"] == f"agent-0_{kube_system}"
    assert lease["leaseDurationSeconds"] == 1


class Ahead(SystemClock):
    """The machine's clock, ahead by the wall for as long as it is told to. Mutable."""

    def __init__(self, by: timedelta) -> None:
        self.by = by

    def now(self) -> datetime:
        """What the wall clock would say."""
        return datetime.now(UTC) + self.by


async def stored(world: World) -> dict[str, Any]:
    """The kubeconfig that the cluster holds."""
    data = await world.secret(world.downstream, "starling-upstream")
    assert data is not None
    kept: dict[str, Any] = json.loads(data["kubeconfig"])
    return kept


async def test_its_token_is_renewed_at_half_life_and_used(world: World) -> None:
    """A new token takes the old one's place in the Secret, and the connection goes on with it."""
    config = await world.enrol()
    old = await request_token(world.hub, Key(world.namespace, account_name("c")), timedelta(minutes=10))
    config["users"][0]["user"]["token"] = old
    await world.dial_in(config)
    await world.propose(entry("base"))
    clock = Ahead(timedelta(minutes=6))  # past half of the life of a token of ten
    async with world.pulling(clock=clock):

        async def renewed() -> bool:
            return token_in(await stored(world)) != old

        await until(renewed)
        clock.by = timedelta()

        async def in_use() -> bool:
            expires = expires_at(token_in(await stored(world)))
            return expires is not None and (await world.upstream()).status.token_expires == expires

        await until(in_use)
        before, after = expires_at(old), expires_at(token_in(await stored(world)))
        assert before is not None
        assert after is not None
        assert timedelta() <= after - before < timedelta(minutes=3)
        await world.runs("base")
        await world.ready("Connected")


async def test_a_lease_that_is_gone_is_said_to_be_gone(world: World) -> None:
    """The hub answers, but nobody there waits for this cluster's heartbeat."""
    await world.dial_in(await world.enrol())
    async with world.pulling(heartbeat=0.5):
        await world.ready("Connected")
        await world.hub.delete(LEASES.ref("starling-cluster-c", world.namespace))
        gone = await world.ready("NotEnrolled")
        (message,) = [each.message for each in gone.status.conditions if each.type == "Ready"]
        assert f"starling enrol c --namespace {world.namespace}" in message


async def test_a_revoked_cluster_says_how_to_enrol_again_and_comes_back(world: World) -> None:
    """Unauthorized names the one command, nothing is touched meanwhile, and a new kubeconfig connects at once."""
    await world.propose(entry("base"))
    config = await world.enrol()
    await world.dial_in(config)
    async with world.pulling(heartbeat=0.5):
        before = await world.runs("base")
        await world.ready("Connected")
        for ref in revoked("c", world.namespace):
            await world.hub.delete(ref)
        refused = await world.ready("Unauthorized")
        (message,) = [each.message for each in refused.status.conditions if each.type == "Ready"]
        assert f"starling enrol c --namespace {world.namespace}" in message
        assert token_in(config) not in message
        after = await world.local()
        assert after is not None
        assert after.metadata.resource_version == before.metadata.resource_version
        await world.dial_in(await world.enrol())
        await world.ready("Connected")


async def test_a_hub_that_is_away_changes_nothing_and_is_found_again(world: World) -> None:
    """The Upstream says that the hub doesn't answer; when it does, what changed meanwhile arrives."""
    await world.propose(entry("base"))
    config = await world.enrol()
    async with Relay(int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])) as relay:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
        await world.dial_in(config)
        async with world.pulling(heartbeat=0.5):
            before = await world.runs("base")
            await world.ready("Connected")
            relay.cut()
            await world.ready("Unreachable")
            await world.propose(entry("base"), entry("mesh"))
            after = await world.local()
            assert after is not None
            assert after.metadata.generation == before.metadata.generation
            await relay.mend()
            await world.runs("base", "mesh")
            await world.ready("Connected")


async def test_a_kubeconfig_that_reaches_out_is_refused(world: World) -> None:
    """One that would run a program is not used, and the Upstream says why; without a Secret it says that."""
    await world.dial_in({"clusters": [], "users": [], "contexts": []})
    config = await world.enrol()
    config["users"][0]["user"] = {"exec": {"command": "touch", "apiVersion": "client.authentication.k8s.io/v1"}}
    async with world.pulling():
        await world.ready("InvalidKubeconfig")
        await world.dial_in(config)

        async def explained() -> bool:
            conditions = (await world.upstream()).status.conditions
            return any("exec isn't allowed here" in each.message for each in conditions)

        await until(explained)
        await world.put_secret(world.downstream, "starling-upstream", {}, {"starling.dev/kubeconfig": "none"})
        stalled = await world.ready("InvalidInput")
        assert isinstance(stalled, Upstream)


async def test_conditions_in_another_order_are_no_news(world: World) -> None:
    """What an Upstream's status says already isn't written again because the server lists it in another order."""
    await world.dial_in({"clusters": [], "users": [], "contexts": []})
    async with traffic(world.downstream_cluster) as counted, Client(counted.access) as client:
        agent = World(world.hub, client, world.namespace, world.hub_cluster, world.downstream_cluster)
        async with agent.pulling():
            stalled = await world.ready("InvalidKubeconfig")
            listed = msgspec.to_builtins(stalled.status)["conditions"]
            ref = Upstream.declaration.resource.ref("hub", world.namespace)
            counted.asked.clear()
            for order in (listed[::-1], listed, listed[::-1]):
                await world.downstream.merge_patch(ref.status, {"status": {"conditions": order}}, manager="server")
            await world.put_secret(world.downstream, "starling-upstream", {}, {"starling.dev/kubeconfig": "none"})
            await world.ready("InvalidInput")
            assert len(counted.writes()) == 1
