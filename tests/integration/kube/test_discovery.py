"""Discovery knows what a cluster serves, learns of what appears, and isn't spoilt by what is broken."""

import asyncio
from typing import Any

import pytest

from starling.kube import Client, NotServed, Resource
from starling.objects import GroupVersionKind

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)


def definition(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1beta1", "v1")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"birds.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "birds", "singular": "bird", "kind": "Bird", "shortNames": ["bd"]},
            "versions": versions,
        },
    }


async def served(client: Client, kind: GroupVersionKind) -> Resource:
    async with asyncio.timeout(30):
        while True:
            try:
                return await client.discovery.resource(kind)
            except NotServed:
                await asyncio.sleep(0.05)


async def test_built_in_kinds(client: Client) -> None:
    """Scope, plural, short names and subresources are as the server has them; the preferred version is known."""
    pods = await client.discovery.resource(GroupVersionKind("", "v1", "Pod"))
    assert (pods.plural, pods.namespaced) == ("pods", True)
    assert "po" in pods.short_names
    assert {"status", "log"} <= set(pods.subresources)
    nodes = await client.discovery.resource(GroupVersionKind("", "v1", "Node"))
    assert not nodes.namespaced
    assert (await client.discovery.preferred("autoscaling", "HorizontalPodAutoscaler")).version == "v2"


async def test_a_kind_that_appears_later_is_found(client: Client) -> None:
    """A miss asks the server again, so a new CRD needs no restart."""
    kind = GroupVersionKind("later.example", "v1beta1", "Bird")
    with pytest.raises(NotServed, match=r"doesn't serve Bird in later\.example/v1beta1"):
        await client.discovery.resource(kind)
    await client.apply(CRDS.ref("birds.later.example"), definition("later.example"))
    found = await served(client, kind)
    assert (found.plural, found.namespaced, found.short_names) == ("birds", False, ("bd",))
    assert (await client.discovery.preferred("later.example", "Bird")).version == "v1"


async def test_a_kind_that_went_away_is_forgotten(client: Client) -> None:
    """Using a resource that is no longer served says so, and the next question is asked afresh."""
    kind = GroupVersionKind("gone.example", "v1", "Bird")
    await client.apply(CRDS.ref("birds.gone.example"), definition("gone.example"))
    resource = await served(client, kind)
    await client.delete(CRDS.ref("birds.gone.example"))
    async with asyncio.timeout(30):
        with pytest.raises(NotServed):
            while True:
                await client.raw("GET", resource.path())
                await asyncio.sleep(0.05)
    with pytest.raises(NotServed):
        await client.get(resource.ref("robin"))
    with pytest.raises(NotServed):
        await client.discovery.resource(kind)


async def test_a_dead_group_spoils_no_other(client: Client) -> None:
    """An API service that nobody answers for leaves its group unknown, and says so, and the rest usable."""
    await client.apply(SERVICES.ref("v1.dead.example"), {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.dead.example"},
        "spec": {"group": "dead.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                 "insecureSkipTLSVerify": True, "service": {"name": "nobody", "namespace": "default"}},
    })  # fmt: skip
    try:
        async with asyncio.timeout(30):
            while "dead.example/v1" not in await client.discovery.stale_groups():
                await asyncio.sleep(0.05)
        assert (await client.discovery.resource(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"
        with pytest.raises(NotServed, match=r"API service behind dead\.example/v1 doesn't answer"):
            await client.discovery.resource(GroupVersionKind("dead.example", "v1", "Bird"))
    finally:
        await client.delete(SERVICES.ref("v1.dead.example"))


async def test_many_who_miss_at_once_ask_once(client: Client) -> None:
    """A stampede of misses is one question to the server."""
    kinds = [GroupVersionKind("", "v1", name) for name in ("Pod", "Secret", "ConfigMap", "Service")] * 25
    found = await asyncio.gather(*(client.discovery.resource(kind) for kind in kinds))
    assert len(found) == 100
    assert client.discovery.refreshes == 1
