"""An API server that dies in the middle of a run, or whose answers are lost: the engine carries on by itself."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import pytest

from starling.engine import Readiness, SyncEvent, Task, Unit, UnitStatus
from starling.kube import Client, NotServed, Patience, ServerError, TooManyRequests, Unreachable, kubeconfig
from starling.local import LocalCluster
from starling.objects import GroupVersionKind
from tests.integration.clusters import kill, revive, running, through
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.revisions import REVISIONS, Place, manifests_of, text
from tests.integration.engine.world import World, running_engine, unit_id, world
from tests.integration.relay import Relay
from tests.rounds import ROUNDS
from tests.waiting import until

VICTIMS = (("kube-apiserver",), ("etcd", "kube-apiserver"))


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of these tests' own, to be killed."""
    with running(tmp_path_factory.mktemp("clusters"), "mortal") as cluster:
        yield cluster


@pytest.fixture
async def place(mortal: LocalCluster, request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A namespace on it."""
    name = f"lost-{abs(hash(request.node.name)) % 10**8}"
    async with Client(kubeconfig(mortal.kubeconfig)) as client:
        resource = await client.discovery.resource(GroupVersionKind("", "v1", "Namespace"))
        await client.create(resource, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        place = Place(client, name, Unit(id=unit_id(name), cluster="here", target_namespace=name))
        await place.prepare()
        yield place


def at_event(number: int, do: Callable[[], object]) -> Callable[[SyncEvent], None]:
    """A callback that does something when so many tasks are done; not while a CRD is being established.

    An API server that is killed between accepting a CRD's names and establishing it never does so: Kubernetes' own
    controller isn't told again. No engine can help that.
    """
    events = iter(range(1, number + 1))

    def told(event: SyncEvent) -> None:
        is_crd = event.task.key is not None and event.task.key.kind == "CustomResourceDefinition"
        if not is_crd and next(events, None) == number:
            do()

    return told


def finished(here: World, identity: str) -> Callable[[UnitStatus], bool]:
    """Whether the newest manifests are applied, and nothing that was pruned is still going."""
    revision = here.texts[identity][0]
    return lambda status: (
        bool(status.baseline) and status.applied_revision == revision and all(status.inventory.values())
    )


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("victims", VICTIMS, ids="+".join)
async def test_killed_in_the_middle(mortal: LocalCluster, place: Place, victims: Sequence[str], seed: int) -> None:
    """Brought back, it gets the revision that was under way, or the newer one, or is rid of the unit."""
    rng = random.Random(f"{victims} {seed}")
    foreign = place.foreign(await place.found())
    here, dead = world(mortal), asyncio.Event()

    def strike() -> None:
        kill(mortal, *victims)
        dead.set()

    async with running_engine(here) as engine:
        for revision in (*REVISIONS, ""):
            dead.clear()
            forget = engine.on_sync_event(at_event(rng.randint(1, 30), strike))
            manifests = text(revision or REVISIONS[-1], place.namespace)
            identity = here.put(place.unit.id, manifests, target_namespace=place.namespace, deleting=not revision)
            async with asyncio.timeout(60):
                await dead.wait()
            forget()
            await revive(mortal)
            if revision:
                await here.until(identity, finished(here, identity))
                found = await place.check(manifests_of(revision, place.namespace))
            else:
                await here.until(identity, lambda status: status.removed)
                found = await place.found()
            assert place.foreign(found) == foreign
        assert found.keys() == foreign.keys()


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_new_engine_at_a_server_that_is_just_starting(mortal: LocalCluster, place: Place, seed: int) -> None:
    """Kinds that a server doesn't know while it starts, or is away, are not taken for kinds that are gone."""
    del seed
    here = world(mortal)
    for revision in ("B", "C"):
        identity = here.put(place.unit.id, text(revision, place.namespace), target_namespace=place.namespace)
        async with running_engine(here):
            if revision == "C":
                await here.until(identity, lambda status: status.readiness is Readiness.UNKNOWN)
            await revive(mortal)
            await here.until(identity, finished(here, identity))
        await place.check(manifests_of(revision, place.namespace))
        kill(mortal, *VICTIMS[-1])
    await revive(mortal)
    here.put(place.unit.id, text("C", place.namespace), target_namespace=place.namespace, deleting=True)
    async with running_engine(here):
        await here.until(identity, lambda status: status.removed)


async def test_what_a_starting_server_says_of_its_kinds(mortal: LocalCluster, place: Place) -> None:
    """Asked all the while as it starts, it is never believed that a custom kind isn't there."""
    definition = next(
        each for each in manifests_of("A", place.namespace) if each.key.kind == "CustomResourceDefinition"
    )
    crds = await place.client.discovery.resource(definition.gvk)
    eggs = GroupVersionKind(f"{place.namespace}.example.org", "v1", "Egg")
    await place.client.apply(crds.ref(definition.name), definition)
    await until(partial(served, place.client, eggs))
    kill(mortal)
    reviving = asyncio.create_task(revive(mortal))
    answers = 0
    async with Client(kubeconfig(mortal.kubeconfig), patience=Patience(attempts=1)) as impatient:
        while not reviving.done() or not answers:
            impatient.discovery.forget()
            with suppress(ServerError, TooManyRequests, Unreachable):  # it says that it doesn't know: that is fair
                await impatient.discovery.resource(eggs)
                answers += 1
            await asyncio.sleep(0)
    await reviving
    await place.leave()


async def served(client: Client, kind: GroupVersionKind) -> bool:
    """Whether a kind is there."""
    try:
        await client.discovery.resource(kind)
    except NotServed:
        return False
    return True


ONE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays}}\n---\n"
LOST = {
    "apply": (ONE, f"{ONE}{{apiVersion: v1, kind: ConfigMap, metadata: {{name: one}}, data: {{a: '1'}}}}", 2),
    "create": (ONE, f"{ONE}{{apiVersion: v1, kind: ConfigMap, metadata: {{generateName: one-}}, data: {{a: '1'}}}}", 2),
    "delete": (f"{ONE}{{apiVersion: v1, kind: ConfigMap, metadata: {{name: one}}}}", ONE, 1),
}


@pytest.mark.parametrize("verb", LOST)
async def test_an_answer_is_lost(cluster: LocalCluster, client: Client, namespace: str, verb: str) -> None:
    """What was done though we never heard of it is found again, not done twice."""
    first, then, remaining = LOST[verb]
    async with Relay(cluster.port) as relay:
        here = World(through(cluster, relay.port))
        identity = here.put(namespace, first, target_namespace=namespace)
        async with running_engine(here) as engine:
            await here.synced(identity)

            def lose(_unit: Unit, tasks: Sequence[Task]) -> None:
                relay.loses_answers = bool(tasks) and not failed

            failed: list[SyncEvent] = []

            def told(event: SyncEvent) -> None:
                if event.problem is not None:
                    failed.append(event)
                    relay.loses_answers = False

            engine.on_before_sync(lose)
            engine.on_sync_event(told)
            here.put(namespace, then, target_namespace=namespace)
            await here.synced(identity)
    assert [event.task.action.value for event in failed] == ["prune" if verb == "delete" else verb]
    listed = (await client.raw("GET", CONFIG_MAPS.path(namespace))).json()["items"]
    assert len(listed) == remaining
    assert len(here.status(identity).inventory) == remaining
