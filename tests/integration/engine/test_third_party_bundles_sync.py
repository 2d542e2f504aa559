"""What well-known projects publish is applied, applied again as a no-op, and pruned, all of it at once on one cluster.

Pods are simulated and serve nothing: metrics-server's API group and cert-manager's webhook stay dead all the while.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest

from starling.engine import Phase, Readiness, UnitStatus
from starling.engine.ownership import LABEL, TRACKING
from starling.kube import FIELD_MANAGER, Client, Resource, kubeconfig
from starling.local import LocalCluster
from starling.objects import Manifest, ObjectKey
from tests.integration.clusters import running
from tests.integration.engine.traffic import Asked, traffic
from tests.integration.engine.world import World, running_engine, unit_id
from tests.integration.third_party import BUNDLES, Bundle, bundle_named, manifests
from tests.waiting import until

pytestmark = pytest.mark.timeout(900)  # the first run on a machine builds Helm

PATIENCE = 240.0
ROLLOUTS = "argo-rollouts"
GUARDED = bundle_named("podinfo-secure")
SOUND = tuple(bundle for bundle in BUNDLES if bundle is not GUARDED)
RESTLESS = frozenset({"Event", "Lease", "ComponentStatus"})
LAST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: synced-last, namespace: default}\n"

Statuses = Mapping[str, UnitStatus]


class Metadata(msgspec.Struct):
    """What shows whether we have marks on an object."""

    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    managed_fields: list[dict[str, Any]] = msgspec.field(default=[], name="managedFields")

    @property
    def marked(self) -> bool:
        """Whether anything of us is on it."""
        ours = any(entry.get("manager") == FIELD_MANAGER for entry in self.managed_fields)
        return ours or LABEL in self.labels or TRACKING in self.annotations


class Found(msgspec.Struct):
    """Any object."""

    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Story:
    """What came to pass: after a first sync, after a restart, and after the units were removed."""

    synced: Statuses
    written_again: Sequence[Asked]
    restarted: Statuses
    removed: Statuses
    left: Mapping[ObjectKey, Metadata]


@pytest.fixture(scope="module")
def contents() -> dict[str, list[Manifest]]:
    """All bundles, as published."""
    return {bundle.name: manifests(bundle) for bundle in BUNDLES}


@pytest.fixture(scope="module")
def story(contents: dict[str, list[Manifest]], tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Everything in one go, on a cluster of its own."""
    with running(tmp_path_factory.mktemp("third-party"), "third-party", workloads=True) as cluster:
        return asyncio.run(happen(cluster, contents))


async def happen(cluster: LocalCluster, contents: Mapping[str, list[Manifest]]) -> Story:
    """Sync all bundles, restart, remove them."""
    async with traffic(cluster) as counted, Client(kubeconfig(cluster.kubeconfig)) as client:
        await make_namespace(client, ROLLOUTS)
        before = await everything(client)
        world = World(counted.access)

        def give(bundle: Bundle, **unit: Any) -> str:
            namespace = bundle.namespace or "default"
            return world.give(bundle.name, contents[bundle.name], "published", default_namespace=namespace, **unit)

        async with running_engine(world):
            for identity in [give(bundle) for bundle in SOUND]:
                await until(partial(world.done, identity), within=PATIENCE)
            await refused(world, give(GUARDED))
            synced = statuses(world)
        give(GUARDED, held="what it asks is dead")
        counted.asked.clear()
        async with running_engine(world):
            await world.until(unit_id("metrics-server"), lambda status: "FailedDiscoveryCheck" in str(status.problems))
            await world.synced(world.put("last", LAST))
            written_again = [asked for asked in counted.writes() if asked.name != "synced-last"]
            restarted = statuses(world)
            going = [*(give(bundle, deleting=True) for bundle in BUNDLES), world.put("last", LAST, deleting=True)]
            for identity in going:
                await until(partial(gone, world, identity), within=PATIENCE)
            removed = statuses(world)
        return Story(synced, written_again, restarted, removed, await left_behind(client, before))


async def refused(world: World, identity: str) -> None:
    """Wait until a unit has failed with two of its objects, and all others are ready."""

    def so(status: UnitStatus) -> bool:
        failed = status.operation is not None and status.operation.phase is Phase.FAILED
        return failed and len(status.problems) == 2 and status.objects.get(Readiness.CURRENT) == 11

    await world.until(identity, so)


def gone(world: World, identity: str) -> bool:
    """Whether nothing is left of a unit."""
    return world.status(identity).removed


def statuses(world: World) -> Statuses:
    """All bundles' statuses, by name."""
    return {
        bundle.name: world.status(unit_id(bundle.name)) for bundle in BUNDLES if unit_id(bundle.name) in world.units
    }


async def make_namespace(client: Client, name: str) -> None:
    """A namespace with all that the control plane puts into each."""
    namespaces = await client.discovery.preferred("", "Namespace")
    await client.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="me")
    made = {ObjectKey("", "ConfigMap", name, "kube-root-ca.crt"), ObjectKey("", "ServiceAccount", name, "default")}

    async def complete() -> bool:
        return made <= (await everything(client)).keys()

    await until(complete)


async def everything(client: Client) -> dict[ObjectKey, Metadata]:
    """Every object of the cluster, but for those that come and go by themselves."""
    found: dict[ObjectKey, Metadata] = {}
    kinds: dict[tuple[str, str], Resource] = {}
    for resource in await client.discovery.resources():
        if "list" in resource.verbs and resource.kind not in RESTLESS:
            kinds.setdefault((resource.group, resource.kind), resource)
    for (group, kind), resource in kinds.items():
        for each in (await client.list(resource, Found)).items:
            found[ObjectKey(group, kind, each.metadata.namespace, each.metadata.name)] = each.metadata
    return found


async def left_behind(client: Client, before: Mapping[ObjectKey, Metadata]) -> Mapping[ObjectKey, Metadata]:
    """What is there that wasn't, once the garbage collector is through: pods and the like are gone a while later."""

    async def found() -> dict[ObjectKey, Metadata]:
        return {key: metadata for key, metadata in (await everything(client)).items() if key not in before}

    async def settled() -> bool:
        return {key.kind for key in await found()} <= {"CustomResourceDefinition", "APIService"}

    await until(settled)
    return await found()


def test_bundles_are_applied_and_become_ready(story: Story, contents: dict[str, list[Manifest]]) -> None:
    """All objects are Current: large CRDs, custom objects, and, by kstatus' rules, HPAs without metrics as well."""
    found = {bundle.name: story.synced[bundle.name] for bundle in SOUND}
    sizes = {bundle.name: {Readiness.CURRENT: len(contents[bundle.name])} for bundle in SOUND}
    assert {name: status.objects for name, status in found.items()} == sizes
    complaining = {name for name, status in found.items() if status.problems}
    assert complaining <= {"metrics-server"}, "its APIService, as soon as it has found out"
    assert {status.applied_revision for status in found.values()} == {"published"}


def test_a_dead_webhook_is_reported_with_the_objects_it_keeps_out(story: Story) -> None:
    """The two objects that cert-manager's webhook is asked about are named with the reason; all others are applied."""
    status = story.synced[GUARDED.name]
    assert {problem.key.kind for problem in status.problems if problem.key is not None} == {
        "Certificate",
        "ClusterIssuer",
    }
    assert all('failed calling webhook "webhook.cert-manager.io"' in problem.message for problem in status.problems)
    assert all("connection refused" in problem.message for problem in status.problems)
    assert status.objects == {Readiness.CURRENT: 11, Readiness.MISSING: 2}
    assert status.readiness in {Readiness.FAILED, Readiness.MISSING}
    assert "webhook.cert-manager.io" in status.message


def test_a_restart_writes_nothing(story: Story) -> None:
    """A new engine finds everything as it was left, though one API group doesn't answer."""
    assert story.written_again == []


def test_a_dead_api_service_is_reported(story: Story) -> None:
    """To kstatus an APIService is always Current; the report says all the same what is wrong with it."""
    status = story.restarted["metrics-server"]
    assert status.readiness is Readiness.CURRENT
    [problem] = status.problems
    assert problem.key == ObjectKey("apiregistration.k8s.io", "APIService", "", "v1beta1.metrics.k8s.io")
    assert problem.message.startswith(f"{problem.key}: not available: FailedDiscoveryCheck")
    assert all(story.restarted[bundle.name].readiness is Readiness.CURRENT for bundle in SOUND[:2])


def test_nothing_is_left_of_what_units_owned(story: Story) -> None:
    """When the units go, their objects do, those that never came into being included."""
    assert {name: status.inventory for name, status in story.removed.items()} == {bundle.name: {} for bundle in BUNDLES}


def test_only_what_asks_to_be_kept_is_left(story: Story, contents: dict[str, list[Manifest]]) -> None:
    """cert-manager's CRDs carry Helm's annotation to be kept: they stay, without our marks, and nothing else does."""
    kept = {each.key for each in contents["cert-manager"] if each.annotations.get("helm.sh/resource-policy") == "keep"}
    assert {key for key in story.left if key.kind == "CustomResourceDefinition"} == kept
    assert {key.name for key in story.left if key.kind == "APIService"} == {
        "v1.acme.cert-manager.io",
        "v1.cert-manager.io",
    }
    assert not any(metadata.marked for metadata in story.left.values())
