"""Discovery knows what a cluster serves, learns of what appears, and isn't spoilt by what is broken."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from starling.aio import SYSTEM_CLOCK
from starling.kube import Body, Client, Discovery, NotServed, Patience, Resource, kubeconfig
from starling.kube.transport import Request, Transport
from starling.local import LocalCluster
from starling.objects import GroupVersionKind
from tests.waiting import until

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)


def definition(group: str) -> dict[str, Any]:
    """A CRD of birds in that group, in two versions."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1beta1", "v1")]
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
    """The resource, as soon as the server serves it."""

    async def ask() -> Resource | None:
        with suppress(NotServed):
            return await client.discovery.resource(kind)
        return None

    found = await until(ask)
    assert found is not None
    return found


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

    async def served_still() -> bool:
        await client.raw("GET", resource.path())
        return False

    with pytest.raises(NotServed):
        await until(served_still)
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

        async def known_as_dead() -> bool:
            return "dead.example/v1" in await client.discovery.stale_groups()

        await until(known_as_dead)
        assert (await client.discovery.resource(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"
        with pytest.raises(NotServed, match=r"API service behind dead\.example/v1 doesn't answer"):
            await client.discovery.resource(GroupVersionKind("dead.example", "v1", "Bird"))
    finally:
        await client.delete(SERVICES.ref("v1.dead.example"))


class Counting(Transport):
    """A transport that counts what it sends."""

    sent = 0

    async def send(self, request: Request, *, attempts: int | None = None) -> Body:
        self.sent += 1
        return await super().send(request, attempts=attempts)


async def test_many_who_miss_at_once_ask_once(cluster: LocalCluster) -> None:
    """A stampede of misses is one question to each of the server's two roots, and a hit is none."""
    transport = Counting(kubeconfig(cluster.kubeconfig), Patience(), SYSTEM_CLOCK)
    discovery = Discovery(transport)
    kinds = [GroupVersionKind("", "v1", name) for name in ("Pod", "Secret", "ConfigMap", "Service")] * 25
    found = await asyncio.gather(*(discovery.resource(kind) for kind in kinds))
    assert len(found) == 100
    assert transport.sent == 2
    await discovery.resource(kinds[0])
    assert transport.sent == 2
    await transport.close()


async def test_who_misses_while_an_answer_is_on_its_way_waits_for_the_next(cluster: LocalCluster) -> None:
    """An answer to an older question says nothing about a kind that appeared since."""
    transport = Counting(kubeconfig(cluster.kubeconfig), Patience(), SYSTEM_CLOCK)
    discovery = Discovery(transport)
    first = asyncio.ensure_future(discovery.resources())
    await until(lambda: asyncio.sleep(0, transport.sent >= 1))
    with pytest.raises(NotServed):
        await discovery.resource(GroupVersionKind("", "v1", "Nothing"))
    assert transport.sent == 4 + 3, "its own question, not the one that was on its way; again when the server is ready"
    await first
    await transport.close()
