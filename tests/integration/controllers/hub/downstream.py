"""A cluster as its hub hears of it: what an agent would write there, by the same pure decisions."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from starling.api import Assemblage, Cluster, ObjectMeta, ProxyAssemblage
from starling.api.enrolment import account_name, hub_documents
from starling.api.v1alpha1 import AssemblageSpec, AssemblageStatus, Entry, EntryStatus, ProxyAssemblageStatus
from starling.fleet import local_spec, report
from starling.kube import Conflict, NotFound, Ref, Resource
from tests.integration.controllers.hub.stage import Hub, put
from tests.waiting import until

__all__ = ["Downstream"]

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
AGENT = "starling-agent"


class Downstream:
    """A cluster that dials in. Mutable: the Assemblage it holds, and how its entries fare."""

    def __init__(self, hub: Hub, name: str = "c") -> None:
        self.hub = hub
        self.name = name
        self.local: Assemblage | None = None
        self.states: dict[str, str] = {}
        """How entries fare, and after a colon what they say; those that aren't named succeed."""
        self._taken: tuple[int, int] | None = None

    @classmethod
    async def enrol(
        cls, hub: Hub, name: str = "c", labels: Mapping[str, str] | None = None, allowed: tuple[str, ...] = ()
    ) -> "Downstream":
        """A cluster that the hub has never heard of."""
        chosen = {"ring": "canary"} if labels is None else labels
        await put(hub.client, hub_documents(name, hub.namespace, chosen, allowed))
        return cls(hub, name)

    @classmethod
    async def ready(cls, hub: Hub, name: str = "c", labels: Mapping[str, str] | None = None) -> "Downstream":
        """A cluster that is there, and whose entries the hub knows, of which there are none."""
        made = await cls.enrol(hub, name, labels)
        await made.comes()
        await made.adopted()
        return made

    # Being there

    async def beats(self) -> None:
        """Renew the Lease, once."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await self.hub.client.merge_patch(self.lease, {"spec": {"renewTime": now, "holderIdentity": "agent"}})

    async def comes(self) -> Cluster:
        """Be heard of; a beat that a hub finds when it starts says nothing, so there may be more."""

        async def is_ready() -> Cluster | None:
            await self.beats()
            found = await self.hub.get(Cluster, self.name)
            return found if found is not None and found.status.phase == "Ready" else None

        found = await until(is_ready)
        assert found is not None
        return found

    async def goes(self) -> None:
        """Be gone: without its Lease it counts as lost at once."""
        await self.hub.client.delete(self.lease)
        await self.hub.sees(Cluster, self.name, lambda it: it.status.phase == "Unreachable")

    async def asks_for(self, **labels: str) -> None:
        """Tell of itself, and of labels that it wishes to have."""
        ref = Cluster.declaration.resource.ref(self.name, self.hub.namespace).status
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": self.name, "namespace": self.hub.namespace},
            "status": {"requestedLabels": labels, "uid": "u-1", "kubernetesVersion": "v1.99.0", "agentVersion": "9"},
        }
        await self.hub.client.apply(ref, body, manager=AGENT)

    # What it is told, and tells

    async def proxy(self) -> ProxyAssemblage | None:
        """What the hub says."""
        return await self.hub.get(ProxyAssemblage, self.name)

    async def entries(self) -> dict[str, Entry]:
        """What the hub says that it is to run."""
        proxy = await self.proxy()
        return {each.name: each for each in proxy.spec.syncs} if proxy is not None else {}

    def holds(self, *entries: Entry, uid: str = "a-1") -> None:
        """Have an Assemblage of entries, as one that another hub left has."""
        spec = AssemblageSpec(instance="fleet", syncs=entries)
        self.local = Assemblage(metadata=ObjectMeta(name="fleet", uid=uid, generation=1), spec=spec)

    async def delivers(self) -> ProxyAssemblage | None:
        """Take in what the hub says now, and tell how it stands."""
        proxy = await self.proxy()
        if proxy is None:
            return None
        self._take(proxy)
        told = report(proxy.spec, proxy.metadata.generation, self.local, self._taken, proxy.status)
        if told == proxy.status:
            return proxy
        return await self.tells(told)

    def _take(self, proxy: ProxyAssemblage) -> None:
        local = self.local
        spec = local_spec(proxy.spec, local)
        generation = 1 if local is None else local.metadata.generation + (local.spec != spec)
        meta = local.metadata if local is not None else ObjectMeta(name="fleet", uid=f"a-{self.name}")
        syncs = tuple(self._state(each) for each in spec.syncs) if not spec.released else ()
        self.local = Assemblage(
            metadata=msgspec.structs.replace(meta, generation=generation),
            spec=spec,
            status=AssemblageStatus(observed_generation=generation, syncs=syncs),
        )
        self._taken = (proxy.metadata.generation, generation)

    def _state(self, entry: Entry) -> EntryStatus:
        state, _, message = self.states.get(entry.name, "succeeded").partition(": ")
        told = {"name": entry.name, "target": entry.target, "state": state, "message": message}
        return msgspec.convert(told, EntryStatus)

    async def tells(self, status: ProxyAssemblageStatus) -> ProxyAssemblage:
        """Have the hub's ProxyAssemblage say so of it."""
        ref = ProxyAssemblage.declaration.resource.ref(self.name, self.hub.namespace).status
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": "ProxyAssemblage",
            "metadata": {"name": self.name, "namespace": self.hub.namespace},
            "status": msgspec.to_builtins(status),
        }
        return (await self.hub.client.apply(ref, body, manager=AGENT)).decode(ProxyAssemblage)

    async def delivers_until(self, so: Callable[[ProxyAssemblage], object]) -> ProxyAssemblage:
        """Go on taking in and telling until what the hub says is so."""
        found: ProxyAssemblage | None = None

        async def is_so() -> bool:
            nonlocal found
            try:
                found = await self.delivers()
            except (NotFound, Conflict):
                return False
            return found is not None and bool(so(found))

        try:
            await until(is_so)
        except TimeoutError:
            raise AssertionError(f"never so: {found}; log: {self.hub.log[-10:]}") from None
        assert found is not None
        return found

    async def adopted(self) -> ProxyAssemblage:
        """Go on until the hub knows all that is there."""
        return await self.delivers_until(lambda it: it.spec.adopted and it.spec.adopted == it.status.assemblage)

    async def runs(self, **targets: str) -> ProxyAssemblage:
        """Go on until just these entries are there with these targets, and told of."""
        return await self.delivers_until(
            lambda it: (
                {each.name: each.target for each in it.spec.syncs} == targets
                and it.status.observed == it.metadata.generation
            )
        )

    @property
    def lease(self) -> Ref:
        """What its heartbeats are written to."""
        return LEASES.ref(account_name(self.name), self.hub.namespace)
