"""SyncGroup: its Syncs on the hub, for a cluster that it connects to; what an agent says of them is written here."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from starling.api import Cluster, Sync, SyncGroup
from starling.controllers.group_syncs import GroupSyncs, SyncView
from starling.kube import Conflict, NotFound
from starling.local import LocalCluster
from starling.runtime import Informer
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, condition, put
from tests.waiting import until


async def add_push(hub: Hub, server: LocalCluster, name: str = "c") -> None:
    """A cluster that the hub connects to: the server that it is on itself."""
    metadata = {
        "name": f"{name}-kubeconfig",
        "namespace": hub.namespace,
        "labels": {"starling.dev/kubeconfig": "cluster"},
    }
    data = {"kubeconfig": base64.b64encode(server.kubeconfig.read_bytes()).decode()}
    await put(hub.client, [{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}])
    push = {"kubeconfigSecret": {"name": metadata["name"]}}
    await hub.put(Cluster, name, {"push": push}, labels={"ring": "canary"})


async def put_group(hub: Hub, *parts: str, **more: Any) -> SyncGroup:
    """A group of the repository's folder `base`, once for each part."""
    template = {"source": {"name": "app"}, "path": "base", "package": {"plain": {}}, **more.pop("template", {})}
    syncs = [{"name": part, **template} for part in parts]
    spec = {"selector": {"matchLabels": {"ring": "canary"}}, "syncs": syncs, **more}
    return await hub.put(SyncGroup, "g", spec)


async def agent_says(
    hub: Hub, name: str, readiness: str = "Current", phase: str = "Succeeded", problem: str = ""
) -> None:
    """What an agent writes that has applied a Sync."""
    sync = await hub.sees(Sync, name, lambda _: True)
    operation = {"digest": "d", "phase": phase, "startedAt": "2026-01-01T00:00:00Z"}
    status = {
        "target": sync.spec.target,
        "observedGeneration": sync.metadata.generation,
        "readiness": readiness,
        "operation": operation,
        "problems": [{"reason": "Invalid", "message": problem}] if problem else [],
    }
    ref = Sync.declaration.resource.ref(name, hub.namespace).status
    await hub.client.merge_patch(ref, {"status": status})


@asynccontextmanager
async def at_work(hub: Hub, server: LocalCluster, *parts: str, **more: Any) -> AsyncIterator[None]:
    """A hub with a group on a cluster, of which nothing is said yet."""
    await hub.put_source()
    await add_push(hub, server)
    await put_group(hub, *parts, **more)
    async with hub.running():
        try:
            yield
        finally:
            await hub.client.raw("DELETE", Sync.declaration.resource.path(hub.namespace))


async def test_a_group_is_there_when_all_its_parts_are(hub: Hub, server: LocalCluster) -> None:
    """One Sync for each part, whose word counts once it is about the target; a failure of one is the cluster's."""
    async with at_work(hub, server, "a", "b"):
        sync = await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        assert (sync.spec.cluster and sync.spec.cluster.name, sync.metadata.owner_references) == ("c", ())
        await agent_says(hub, "g.a.c")
        await hub.sees(SyncGroup, "g", lambda it: it.status.summary.updating == 1)
        await agent_says(hub, "g.b.c")
        await hub.sees(SyncGroup, "g", lambda it: it.status.phase == "Succeeded" and not it.status.admitted)
        await put_group(hub, "a", "b", template={"timeout": "7m"})
        await hub.sees(Sync, "g.b.c", lambda it: it.spec.timeout == "7m")
        await agent_says(hub, "g.a.c")
        await agent_says(hub, "g.b.c", "Failed", "Failed", "no such field")
        told = await hub.says(SyncGroup, "g", "1 failed (c)")
        assert [(each.clusters, each.message) for each in told.status.failures] == [(("c",), "no such field")]


async def test_what_is_in_the_way_is_told(hub: Hub, server: LocalCluster) -> None:
    """A Sync of someone else's is left alone; the other parts come, and so does this one once it is gone."""
    template = {"source": {"name": "app"}, "path": "base"}
    await hub.put(Sync, "g.b.c", template)
    async with at_work(hub, server, "a", "b"):
        await hub.says(SyncGroup, "g", f"Sync {hub.namespace}/g.b.c is in the way", "Stalled")
        await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        found = await hub.get(Sync, "g.b.c")
        assert found is not None
        assert found.spec.cluster is None
        await hub.delete(Sync, "g.b.c")
        await hub.patch(SyncGroup, "g", {"metadata": {"labels": {"look": "again"}}})
        await hub.sees(Sync, "g.b.c", lambda it: it.spec.cluster is not None)
        await hub.sees(SyncGroup, "g", lambda it: condition(it, "Stalled")[0] != "True")


async def test_syncs_of_a_cluster_that_is_gone_go(hub: Hub, server: LocalCluster) -> None:
    """Were the cluster added again one day, they would bring back what is long out of date."""
    async with at_work(hub, server, "a"):
        await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        await hub.delete(Cluster, "c")

        async def forced() -> bool:
            """No agent is there to let go of anything, so someone takes the finalizer away, until it stays away."""
            with suppress(NotFound):
                await hub.patch(Cluster, "c", {"metadata": {"finalizers": None}})
            return await hub.get(Cluster, "c") is None

        await until(forced)
        await hub.gone(Sync, "g.a.c")


async def test_objects_stay_if_the_group_says_so_when_it_is_deleted(hub: Hub, server: LocalCluster) -> None:
    """Also if that has to wait for its turn: a Sync says it before it is deleted, so nobody deletes anything."""
    async with at_work(hub, server, "a", rollout={"paused": True}):
        await hub.patch(SyncGroup, "g", {"spec": {"rollout": {"paused": False}}})
        await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": ["example.org/agent"]}})  # no agent is at work here
        await hub.patch(SyncGroup, "g", {"spec": {"rollout": {"paused": True}}})
        await put_group(hub, "a", rollout={"paused": True}, template={"deletionPolicy": "Orphan"})
        assert (await hub.sees(Sync, "g.a.c", lambda _: True)).spec.deletion_policy == "Prune"
        await hub.delete(SyncGroup, "g")
        gone = await hub.sees(Sync, "g.a.c", lambda it: it.metadata.deletion_timestamp is not None)
        assert gone.spec.deletion_policy == "Orphan"
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": None}})
        await hub.gone(SyncGroup, "g")


async def test_objects_stay_if_the_group_says_so_when_a_cluster_is_left(hub: Hub, server: LocalCluster) -> None:
    """The same where a label goes: the Sync goes, after it has said that its objects don't."""
    async with at_work(hub, server, "a"):
        await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": ["example.org/agent"]}})  # no agent is at work here
        await agent_says(hub, "g.a.c")
        await hub.sees(SyncGroup, "g", lambda it: it.status.phase == "Succeeded")
        await hub.patch(Cluster, "c", {"spec": {"mode": "Cordoned"}})
        await put_group(hub, "a", template={"deletionPolicy": "Orphan"})
        await hub.says(SyncGroup, "g", "1 held")
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"ring": None}}, "spec": {"mode": "Active"}})
        gone = await hub.sees(Sync, "g.a.c", lambda it: it.metadata.deletion_timestamp is not None)
        assert gone.spec.deletion_policy == "Orphan"
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": None}})
        await hub.gone(Sync, "g.a.c")


async def test_what_was_changed_meanwhile_is_not_deleted(hub: Hub) -> None:
    """Neither is it told that its objects stay: who decided that has seen another state of it."""
    spec = {"source": {"name": "app"}, "path": "base"}
    sync = await hub.put(Sync, "one", spec)
    seen = SyncView(metadata=sync.metadata, spec=sync.spec)
    await hub.patch(Sync, "one", {"spec": {"timeout": "7m"}})
    syncs = GroupSyncs(hub.client, Informer(hub.client, Sync.declaration.resource, SyncView))
    for orphan in (True, False):
        with pytest.raises(Conflict):
            await syncs.delete(seen, onto=seen.metadata.resource_version, orphan=orphan)
    left = await hub.get(Sync, "one")
    assert left is not None
    assert (left.spec.deletion_policy, left.metadata.deletion_timestamp) == ("Prune", None)
    await syncs.delete(seen, orphan=True)
    await hub.gone(Sync, "one")


async def test_a_removal_that_waits_says_for_whom(hub: Hub, server: LocalCluster) -> None:
    """Nothing is touched on a frozen cluster; whoever deletes a group learns that it is that one, and what to do."""
    async with at_work(hub, server, "a"):
        await hub.sees(Sync, "g.a.c", lambda it: bool(it.spec.target))
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": ["example.org/agent"]}})  # no agent is at work here
        await hub.patch(Cluster, "c", {"spec": {"mode": "Frozen"}})
        await hub.sees(Cluster, "c", lambda it: it.spec.mode == "Frozen")
        await hub.delete(SyncGroup, "g")
        await hub.says(SyncGroup, "g", "1 Syncs and 0 clusters that dial in are left; c frozen")
        await hub.patch(Sync, "g.a.c", {"metadata": {"finalizers": None}})
        await hub.gone(SyncGroup, "g")


async def test_a_cluster_whose_entry_cant_be_made_is_passed_over(hub: Hub) -> None:
    """One that dials in and lacks a label that a binding needs is told of, and holds up no other."""
    await hub.put_source()
    binding = {"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}
    await put_group(hub, "a", template={"bindings": [binding]}, rollout={"maxConcurrent": 1})
    async with hub.running():
        await Downstream.ready(hub, "a")
        other = await Downstream.ready(hub, "b", labels={"ring": "canary", "region": "eu"})
        await other.delivers_until(lambda it: [each.name for each in it.status.syncs] == ["g.a"])
        await hub.says(SyncGroup, "g", "cluster a can't have it: ")
