"""What tests of delivery do on both sides: the hub's part, the cluster's part, and the controllers in between."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import yaml

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, Cluster, ProxyAssemblage, Resource, Upstream
from starling.api.enrolment import account_name, downstream_documents, hub_documents, kubeconfig
from starling.controllers.credentials import Secret
from starling.controllers.delivery import DeliverySettings
from starling.controllers.presence import Presence
from starling.controllers.push import PushController
from starling.controllers.secrets import SECRETS
from starling.controllers.tokens import request_token
from starling.controllers.upstream import UpstreamController, UpstreamSettings
from starling.controllers.views import Proxy
from starling.kube import Client, NotFound, Selection, kubeconfig_data
from starling.local import LocalCluster
from starling.objects import GroupVersionKind
from starling.runtime import Group, Informer, Key
from tests.waiting import until

K = TypeVar("K", bound=Resource)
T = TypeVar("T")

QUICK = DeliverySettings(report_every=0.1, look_every=600.0, first_retry=0.1, longest_retry=1.0)


def entry(name: str, target: str = "t1:one", *, secret: str = "") -> dict[str, Any]:
    """What one Module comes to on a cluster; with credentials of that name."""
    git: dict[str, Any] = {"url": "https://git.example/platform.git", "commit": "a" * 40}
    if secret:
        git["secretRef"] = {"name": "starling-credentials-fleet", "key": secret}
    return {"name": name, "unit": f"fleet/n/Module.{name}@c", "target": target, "source": {"git": git}}


@dataclass(frozen=True)
class World:
    """A hub, a cluster that is called `c` there, and a namespace on both."""

    hub: Client
    downstream: Client
    namespace: str
    hub_cluster: LocalCluster
    downstream_cluster: LocalCluster

    # The hub's part, which an assembler would do

    async def propose(self, *entries: dict[str, Any], cluster: str = "c", **spec: Any) -> ProxyAssemblage:
        """Have the cluster's ProxyAssemblage say so."""
        ref = ProxyAssemblage.declaration.resource.ref(cluster, self.namespace)
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": "ProxyAssemblage",
            "metadata": {"name": cluster, "namespace": self.namespace},
            "spec": {"instance": "fleet", "syncs": list(entries), **spec},
        }
        return (await self.hub.apply(ref, body, manager="assembler")).decode(ProxyAssemblage)

    async def adopt(self) -> ProxyAssemblage:
        """As an assembler does: take over what was found, in the same write that says whose it is."""
        proxy = await found(self._known)
        known = {each.name for each in proxy.spec.syncs}
        imported = [each for each in proxy.status.imported if each.name not in known]
        entries = msgspec.to_builtins((*proxy.spec.syncs, *imported))
        return await self.propose(*entries, adopted=proxy.status.assemblage)

    async def _known(self) -> ProxyAssemblage | None:
        proxy = await self.proxy()
        return proxy if proxy is not None and proxy.status.assemblage else None

    async def proxy(self, cluster: str = "c") -> ProxyAssemblage | None:
        """The cluster's ProxyAssemblage."""
        return await self._get(self.hub, ProxyAssemblage, cluster)

    async def reported(self) -> ProxyAssemblage:
        """It, once the cluster has taken it in."""

        async def taken_in() -> ProxyAssemblage | None:
            proxy = await self.proxy()
            return proxy if proxy is not None and proxy.status.observed == proxy.metadata.generation else None

        return await found(taken_in)

    # The cluster's part, which an agent's Assemblage controller would do

    async def local(self, name: str = "fleet") -> Assemblage | None:
        """The cluster's Assemblage."""
        return await self._get(self.downstream, Assemblage, name)

    async def runs(self, *names: str) -> Assemblage:
        """It, once it has entries of just these names."""

        async def there() -> Assemblage | None:
            local = await self.local()
            return local if local is not None and {each.name for each in local.spec.syncs} == set(names) else None

        return await found(there)

    async def follows(self) -> None:
        """Wait until it is what the proxy says."""

        async def same() -> bool:
            proxy, local = await self.proxy(), await self.local()
            return proxy is not None and local is not None and local.spec == proxy.spec

        await until(same)

    async def stands(self, *states: Mapping[str, Any]) -> None:
        """Have the Assemblage's status say so of its newest generation."""
        local = await self.local()
        assert local is not None
        status = {"observedGeneration": local.metadata.generation, "syncs": list(states), "agentVersion": "9.9"}
        ref = Assemblage.declaration.resource.ref("fleet", self.namespace).status
        await self.downstream.merge_patch(ref, {"status": status})

    # Secrets

    async def secret(self, client: Client, name: str) -> dict[str, bytes] | None:
        """What is in a Secret."""
        try:
            found = (await client.get(SECRETS.ref(name, self.namespace))).decode(Secret)
        except NotFound:
            return None
        return {key: base64.b64decode(value) for key, value in found.entries.items()}

    async def put_secret(
        self, client: Client, name: str, data: Mapping[str, bytes], labels: Mapping[str, str] | None = None
    ) -> None:
        """Have a Secret hold that."""
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace, "labels": dict(labels or {})},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        await client.apply(SECRETS.ref(name, self.namespace), body, manager="test")

    # Push and pull

    async def add_push(self, cluster: str = "c", *, kubeconfig_text: bytes | None = None) -> None:
        """A Cluster that the hub connects to."""
        data = {"kubeconfig": kubeconfig_text or self.downstream_cluster.kubeconfig.read_bytes()}
        await self.put_secret(self.hub, f"{cluster}-kubeconfig", data, {"starling.dev/kubeconfig": "cluster"})
        spec = {"push": {"kubeconfigSecret": {"name": f"{cluster}-kubeconfig"}}}
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": cluster, "namespace": self.namespace},
            "spec": spec,
        }
        await self.hub.apply(Cluster.declaration.resource.ref(cluster, self.namespace), body)

    async def enrol(self, cluster: str = "c") -> dict[str, Any]:
        """What `starling enrol` does on the hub; the kubeconfig for the cluster."""
        await self.put(self.hub, hub_documents(cluster, self.namespace, {"ring": "canary"}, ["zone"]))
        token = await request_token(self.hub, Key(self.namespace, account_name(cluster)))
        access = yaml.safe_load(self.hub_cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
        return kubeconfig(access["server"], access["certificate-authority-data"], token, self.namespace, cluster)

    async def dial_in(self, config: dict[str, Any], cluster: str = "c", **labels: str) -> None:
        """What `starling enrol` gives the cluster."""
        documents = downstream_documents(cluster, self.namespace, config, labels)
        await self.put(self.downstream, [each for each in documents if each["kind"] != "Namespace"])

    async def put(self, client: Client, documents: list[dict[str, Any]]) -> None:
        """Apply documents."""
        for document in documents:
            group, _, version = document["apiVersion"].rpartition("/")
            resource = await client.discovery.resource(GroupVersionKind(group, version, document["kind"]))
            metadata = document["metadata"]
            await client.apply(resource.ref(metadata["name"], metadata.get("namespace", "")), document)

    @asynccontextmanager
    async def pushing(self, *, lost_after: float = 180.0) -> AsyncIterator[Presence]:
        """The hub's side of push, for this namespace."""
        settings = msgspec.structs.replace(QUICK, lost_after=lost_after)
        group, presence, selection = Group("push"), Presence(), Selection(self.namespace)
        clusters = group.informer(Informer(self.hub, Cluster.declaration.resource, Cluster, selection))
        proxies = group.informer(Informer(self.hub, ProxyAssemblage.declaration.resource, Proxy, selection))
        labelled = Selection(self.namespace, labels="starling.dev/kubeconfig=cluster")
        kubeconfigs = group.informer(Informer(self.hub, SECRETS, Secret, labelled))
        PushController(self.hub, presence, settings=settings).join(group, clusters, proxies, kubeconfigs)
        async with ran(group):
            yield presence

    @asynccontextmanager
    async def pulling(self, *, heartbeat: float = 60.0, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[None]:
        """The agent's side of pull, for this namespace."""
        group, selection = Group("pull"), Selection(self.namespace)
        upstreams = group.informer(Informer(self.downstream, Upstream.declaration.resource, Upstream, selection))
        labelled = Selection(self.namespace, labels="starling.dev/kubeconfig=upstream")
        kubeconfigs = group.informer(Informer(self.downstream, SECRETS, Secret, labelled))
        settings = UpstreamSettings(heartbeat_every=heartbeat, renew_after=0.5, identity="agent-0", delivery=QUICK)
        UpstreamController(self.downstream, settings=settings, clock=clock).join(group, upstreams, kubeconfigs)
        async with ran(group):
            yield

    async def upstream(self) -> Upstream:
        """The cluster's Upstream."""
        found = await self._get(self.downstream, Upstream, "hub")
        assert found is not None
        return found

    async def ready(self, reason: str) -> Upstream:
        """It, once its Ready condition has that reason."""

        async def so() -> Upstream | None:
            found = await self.upstream()
            return found if any(c.type == "Ready" and c.reason == reason for c in found.status.conditions) else None

        return await found(so)

    def connect(self, config: Mapping[str, Any]) -> Client:
        """A client as whoever a kubeconfig says."""
        return Client(kubeconfig_data(config))

    async def _get(self, client: Client, kind: type[K], name: str) -> K | None:
        try:
            return (await client.get(kind.declaration.resource.ref(name, self.namespace))).decode(kind)
        except NotFound:
            return None


@asynccontextmanager
async def ran(group: Group) -> AsyncIterator[None]:
    """A group that runs while the block does; what it raises is raised."""
    task = asyncio.create_task(group.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def found(ask: Callable[[], Awaitable[T | None]]) -> T:
    """The first answer that isn't None."""
    answers: list[T] = []

    async def answered() -> bool:
        answers.extend(answer for answer in [await ask()] if answer is not None)
        return bool(answers)

    await until(answered)
    return answers[0]
