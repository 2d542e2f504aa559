"""The assembler, only writer of proxies' specs: all that one cluster runs, compiled from all Modules in one write."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Cluster, Module, ProxyAssemblage, SyncGroup
from starling.api.v1alpha1 import AssemblageSpec, Entry
from starling.controllers.cluster import key_of
from starling.controllers.cluster_credentials import ClusterCredentials
from starling.controllers.entries import described
from starling.controllers.group_syncs import orphaned
from starling.controllers.groups import part_claims, parts_in
from starling.controllers.secrets import Secrets, credentials_name
from starling.controllers.views import Proxy
from starling.controllers.world import World
from starling.controllers.writing import owned_by
from starling.errors import InputError
from starling.fleet import (
    Claim,
    ModuleRevision,
    adopt,
    assemble,
    check_size,
    make_entry,
    part_name,
    selects,
    size_of,
)
from starling.kube import AlreadyExists, Client, DeleteOptions, NotFound
from starling.runtime import Controller, Group, Key, ObjectReference, Recorder, Result

__all__ = ["Assembler"]

LOG = logging.getLogger(__name__)
GATHER: Final = 0.1
"""Seconds for which admissions are gathered, so that Modules which move at once cost a cluster one write."""

_PROXIES: Final = ProxyAssemblage.declaration.resource


class Assembler:
    """Compiles. Mutable: for each cluster, the generation that it wrote last; which may not know what is to stay."""

    def __init__(
        self, client: Client, secrets: Secrets, recorder: Recorder, instance: str, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._secrets = secrets
        self._recorder = recorder
        self._instance = instance
        self._clock = clock
        self._wrote: dict[Key, int] = {}
        self._unheard: set[Key] = set()

    def join(self, group: Group, world: World) -> None:
        """Run with a group."""
        self._world = world
        self._credentials = ClusterCredentials(self._client, self._secrets, world)
        self._controller = group.controller(Controller("assembler", self.reconcile, at_once=16, clock=self._clock))
        world.clusters.listen(self._cluster_changed)
        world.modules.listen(self._module_changed)
        world.groups.listen(self._group_changed)
        world.proxies.listen(self._proxy_changed)

    async def reconcile(self, key: Key) -> Result | None:
        """Have one cluster's ProxyAssemblage say what the cluster is to run."""
        cluster = self._world.clusters.get(key)
        if cluster is None:
            self._credentials.forget(key)
            self._wrote.pop(key, None)
            self._unheard.discard(key)
            return None
        proxy = await self._proxy(key, cluster)
        if proxy is None:
            return None
        wait = await self._credentials.keep(key, cluster, self._spec(cluster, proxy).syncs)
        spec = self._fitting(cluster, proxy, self._spec(cluster, proxy))  # Modules may have changed while that was done
        orphans = any(each.deletion_policy == "Orphan" for each in spec.syncs)
        if orphans and (spec != proxy.spec or not _acknowledged(proxy)):
            self._unheard.add(key)
        if spec != proxy.spec:
            await self._write(proxy, spec)
        return Result(wait)

    async def _proxy(self, key: Key, cluster: Cluster) -> ProxyAssemblage | None:
        """The cluster's proxy as it is now; None if there is none, and one was made if there is to be."""
        ref = _PROXIES.ref(key.name, key.namespace)
        try:
            proxy = (await self._client.get(ref)).decode(ProxyAssemblage)
        except NotFound:
            self._credentials.forget(key)  # whatever was there may have gone with it
            if cluster.metadata.deletion_timestamp is None:
                await self._create(cluster)
            return None
        owners = {each.uid for each in proxy.metadata.owner_references if each.kind == "Cluster"}
        if owners and cluster.metadata.uid not in owners:  # of another cluster that had this name
            with suppress(NotFound):
                await self._client.delete(ref, DeleteOptions(uid=proxy.metadata.uid))
            return None
        return proxy

    def _fitting(self, cluster: Cluster, proxy: ProxyAssemblage, spec: AssemblageSpec) -> AssemblageSpec:
        """The spec, with entries as they were if it would be too large and isn't on its way to less."""
        try:
            check_size(spec.syncs, at_most=size_of(proxy.spec.syncs))
        except InputError as error:
            LOG.warning("%s: %s", key_of(cluster), error)
            self._recorder.event(ObjectReference.of(cluster), "TooLarge", error.message, warning=True)
            return msgspec.structs.replace(spec, syncs=proxy.spec.syncs)
        return spec

    def _spec(self, cluster: Cluster, proxy: ProxyAssemblage) -> AssemblageSpec:
        before, status = proxy.spec, proxy.status
        syncs, adopted = before.syncs, before.adopted
        if status.assemblage and status.assemblage != adopted:
            found = adopt(before, status)
            syncs, adopted = found.syncs, found.adopted
        elif adopted and cluster.metadata.deletion_timestamp is None:
            claims = [*self._claims(cluster, proxy), *self._group_claims(cluster, proxy)]
            syncs = assemble(syncs, claims)
        return AssemblageSpec(
            instance=self._instance,
            mode=cluster.spec.mode,
            adopted=adopted,
            released=cluster.metadata.deletion_timestamp is not None and cluster.status.phase == "Leaving",
            syncs=tuple(sorted(syncs, key=lambda each: each.name)),
        )

    def _claims(self, cluster: Cluster, proxy: ProxyAssemblage) -> list[Claim]:
        """What each Module says of this cluster; one that says nothing, and has nothing there, is left out."""
        namespace, name = cluster.metadata.namespace, cluster.metadata.name
        entries = {each.name for each in proxy.spec.syncs}
        reported = {each.name: each.target for each in proxy.status.syncs}
        about = described(cluster)
        held = cluster.spec.mode != "Active"
        found = []
        for module in self._world.modules.items():
            called = module.metadata.name
            if module.metadata.namespace != namespace:
                continue
            admitted = next((each for each in module.status.admitted if each.cluster == name), None)
            deleting = module.metadata.deletion_timestamp is not None
            if (held and not deleting) or (called not in entries and admitted is None):
                continue
            found.append(
                Claim(
                    module=called,
                    target=(admitted.target if admitted is not None else "") or module.status.target,
                    admission=module.status.admission,
                    admitted=admitted.admission if admitted is not None and not deleting else None,
                    restore=admitted is not None and admitted.restore,
                    leave=admitted is not None and admitted.leave,
                    reported=reported.get(called, ""),
                    selected=selects(module.spec.selector, cluster.metadata.labels),
                    deleting=deleting and module.status.phase == "Removing",
                    orphans=module.spec.sync.deletion_policy == "Orphan",
                    acknowledged=_acknowledged(proxy),
                    make=self._maker(module, about),
                )
            )
        return found

    def _group_claims(self, cluster: Cluster, proxy: ProxyAssemblage) -> list[Claim]:
        """What each SyncGroup says of a cluster that dials in; to the others it goes by itself."""
        namespace, name = cluster.metadata.namespace, cluster.metadata.name
        if cluster.spec.pull is None:
            return []
        about, credentials = described(cluster), credentials_name(self._instance)
        view = msgspec.convert(msgspec.to_builtins(proxy), Proxy)
        found: list[Claim] = []
        for group in self._world.groups.items():
            deleting = group.metadata.deletion_timestamp is not None
            if group.metadata.namespace != namespace or (cluster.spec.mode != "Active" and not deleting):
                continue

            def make(part: str, revision: ModuleRevision, called: str = group.metadata.name) -> Entry | None:
                unit = f"{self._instance}/{namespace}/SyncGroup.{called}.{part}@{name}"
                entry = part_name(called, part)
                return self._made(revision, about, name=entry, unit=unit, credentials=credentials)

            parts = parts_in(group, self._world, cluster, view)
            stay = orphaned(group)
            for part, claim in part_claims(group, self._world, cluster, parts, make):
                found.append(replace(claim, orphans=part in stay, acknowledged=view.acknowledged))
        return found

    def _maker(self, module: Module, about: dict[str, Any]) -> Callable[[str], Entry | None]:
        namespace, called = module.metadata.namespace, module.metadata.name
        cluster = about["metadata"]["name"]

        def make(target: str) -> Entry | None:
            revision = self._world.revisions.get(module, target)
            if revision is None:
                return None
            unit = f"{self._instance}/{namespace}/Module.{called}@{cluster}"
            return self._made(revision, about, name=called, unit=unit, credentials=credentials_name(self._instance))

        return make

    def _made(
        self, revision: ModuleRevision, about: dict[str, Any], *, name: str, unit: str, credentials: str
    ) -> Entry | None:
        try:
            return make_entry(revision, about, name=name, unit=unit, admission=0, credentials=credentials)
        except InputError as error:  # what else the cluster has goes on
            LOG.warning("%s: the entry %s stays as it is: %s", about["metadata"]["name"], name, error)
            return None

    async def _create(self, cluster: Cluster) -> None:
        """A proxy that knows nothing yet of what the cluster runs."""
        meta, declared = cluster.metadata, Cluster.declaration
        proxy = {
            "apiVersion": f"{declared.group}/{declared.version}",
            "kind": "ProxyAssemblage",
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "ownerReferences": [owned_by(cluster)],
            },
            "spec": msgspec.to_builtins(AssemblageSpec(instance=self._instance, mode=cluster.spec.mode)),
        }
        try:
            answer = await self._client.create(_PROXIES, proxy, namespace=meta.namespace)
        except AlreadyExists:
            return  # the watch is about to tell
        self._world.proxies.learn(answer.decode(Proxy))

    async def _write(self, proxy: ProxyAssemblage, spec: AssemblageSpec) -> None:
        """Onto the state that was compiled from; every field is said, so that none stays from before."""
        meta = proxy.metadata
        patch = {
            "metadata": {"resourceVersion": meta.resource_version},
            "spec": {
                "instance": spec.instance,
                "mode": spec.mode,
                "adopted": spec.adopted,
                "released": spec.released,
                "syncs": msgspec.to_builtins(spec.syncs),
            },
        }
        written = (await self._client.merge_patch(_PROXIES.ref(meta.name, meta.namespace), patch)).decode(Proxy)
        self._wrote[written.key] = written.metadata.generation
        self._world.proxies.learn(written)

    # What has changed

    def _cluster_changed(self, before: Cluster | None, after: Cluster | None) -> None:
        if after is None:
            return
        if before is None or _matters(before) != _matters(after):
            self._controller.add(key_of(after))

    def _module_changed(self, before: Module | None, after: Module | None) -> None:
        if before is not None and after is not None:  # what begins is compiled anyway; what is gone leaves its entries
            name = after.metadata.name
            self._moved(before, after, lambda entry: entry == name)

    def _group_changed(self, before: SyncGroup | None, after: SyncGroup | None) -> None:
        if before is not None and after is not None:
            prefix = part_name(after.metadata.name, "")  # also parts that it had before
            self._moved(before, after, lambda entry: entry.startswith(prefix))

    def _moved(self, before: Module | SyncGroup, after: Module | SyncGroup, is_its: Callable[[str], bool]) -> None:
        """Those clusters compile anew whose admission has changed; all that have it if it is to be removed."""
        namespace = after.metadata.namespace
        for admitted in set(after.status.admitted) - set(before.status.admitted):
            self._controller.add_after(Key(namespace, admitted.cluster), GATHER)
        if after.status.phase == "Removing" and before.status.phase != "Removing":
            for proxy in self._world.proxies.items():
                if proxy.metadata.namespace == namespace and any(is_its(each.name) for each in proxy.spec.syncs):
                    self._controller.add(proxy.key)
            for admitted in after.status.admitted:  # an entry may be about to be written
                self._controller.add(Key(namespace, admitted.cluster))

    def _proxy_changed(self, before: Proxy | None, after: Proxy | None) -> None:
        if after is None:
            if before is not None:
                self._controller.add(before.key)  # someone deleted it: the cluster is found anew
        elif after.status.assemblage and after.status.assemblage != after.spec.adopted:
            self._controller.add(after.key)
        elif before is not None:
            known = (before.metadata.generation, self._wrote.get(after.key))
            if after.metadata.generation not in known:
                self._controller.add(after.key)  # someone else wrote there
            if after.acknowledged and after.key in self._unheard:
                self._unheard.discard(after.key)
                self._controller.add(after.key)  # what goes, and leaves its objects there, may go now


def _acknowledged(proxy: ProxyAssemblage) -> bool:
    """Whether the cluster has taken in all that stands there."""
    return proxy.status.observed >= proxy.metadata.generation


def _matters(cluster: Cluster) -> tuple[object, ...]:
    """What an assembly depends on."""
    meta = cluster.metadata
    return (
        meta.labels,
        meta.annotations,
        cluster.spec,
        meta.deletion_timestamp is None,
        cluster.status.phase == "Leaving",
    )
