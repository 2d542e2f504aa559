"""Assemblage: its entries become Syncs, and how these stand becomes its status."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from starling import __version__
from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, Condition, Sync, conditions
from starling.api.v1alpha1 import AssemblageStatus, Entry, EntryStatus, SyncSpec
from starling.controllers.sync_units import key_of
from starling.controllers.writing import key_ref, set_finalizer, write_status
from starling.fleet import entry_status
from starling.kube import Client, DeleteOptions, NotFound
from starling.runtime import Controller, Group, Informer, Key

__all__ = ["FINALIZER", "AssemblageController", "sync_document", "sync_spec"]

FINALIZER: Final = "starling.dev/assemblage"
_NOT_OURS: Final = frozenset({"suspend"})
"""Fields of a Sync's spec that stay as people on the cluster have them."""


class AssemblageController:
    """Keeps Syncs as their Assemblage says. What it knows is in the informers."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock

    def join(self, group: Group, assemblages: Informer[Assemblage], syncs: Informer[Sync]) -> None:
        """Run with a group, on informers of all namespaces."""
        self._assemblages, self._syncs = assemblages, syncs
        controller = group.controller(Controller("assemblage", self.reconcile, clock=self._clock))

        def sync_changed(before: Sync | None, after: Sync | None) -> None:
            sync = after or before
            for assemblage in assemblages.items():
                if sync is not None and assemblage.metadata.namespace == sync.metadata.namespace:
                    controller.add(key_of(assemblage))

        assemblages.listen(lambda _, after: controller.add(key_of(after)) if after is not None else None)
        syncs.listen(sync_changed)

    async def reconcile(self, key: Key) -> None:
        """Write, take away, or let go Syncs, and say how they stand."""
        assemblage = self._assemblages.get(key)
        if assemblage is None:
            return
        deleting = assemblage.metadata.deletion_timestamp is not None
        if deleting and FINALIZER not in assemblage.metadata.finalizers:
            return
        if deleting or assemblage.spec.released:
            await self._release(assemblage, deleting=deleting)
            return
        if FINALIZER not in assemblage.metadata.finalizers:
            assemblage = await set_finalizer(self._client, assemblage, FINALIZER, present=True)
            self._assemblages.learn(assemblage)
        await self._say(assemblage, await self._keep(assemblage), assemblage.metadata.generation)

    async def _keep(self, assemblage: Assemblage) -> list[EntryStatus]:
        """Have a Sync for each entry and none besides; how all of them stand."""
        statuses = [await self._keep_one(assemblage, entry) for entry in assemblage.spec.syncs]
        named = {entry.name for entry in assemblage.spec.syncs}
        for sync in self._controlled(assemblage):
            if sync.metadata.name not in named:
                await self._delete(sync)
                statuses.append(_leaving(sync))
        return statuses

    async def _keep_one(self, assemblage: Assemblage, entry: Entry) -> EntryStatus:
        namespace = assemblage.metadata.namespace
        sync = self._syncs.get(Key(namespace, entry.name))
        if sync is not None and not _controls(assemblage, sync):
            message = f"Sync {namespace}/{entry.name} isn't this Assemblage's, and is left alone; delete or rename it"
            return EntryStatus(
                name=entry.name, target=entry.target, state="failed", readiness="Failed", message=message
            )
        if sync is not None and sync.metadata.deletion_timestamp is not None:
            return _leaving(sync)  # and is made anew once it is gone
        wanted = sync_spec(entry)
        if sync is None or _ours(sync.spec) != wanted:
            ref = Sync.declaration.resource.ref(entry.name, namespace)
            answer = await self._client.apply(ref, sync_document(assemblage, entry.name, wanted))
            sync = answer.decode(Sync)
            self._syncs.learn(sync)
        return entry_status(entry, sync)

    async def _release(self, assemblage: Assemblage, *, deleting: bool) -> None:
        """Let go of everything, objects staying as they are: nothing is pruned because someone left."""
        left = self._controlled(assemblage)
        for sync in left:
            if sync.spec.deletion_policy != "Orphan":
                patch = {"metadata": {"uid": sync.metadata.uid}, "spec": {"deletionPolicy": "Orphan"}}
                self._syncs.learn((await self._client.merge_patch(key_ref(sync), patch)).decode(Sync))
            await self._delete(sync)
        meta, known = assemblage.metadata, assemblage.status.observed_generation
        await self._say(assemblage, [_leaving(sync) for sync in left], known if left else meta.generation)
        if deleting and not left:
            current = self._assemblages.get(key_of(assemblage)) or assemblage
            self._assemblages.learn(await set_finalizer(self._client, current, FINALIZER, present=False))

    async def _delete(self, sync: Sync) -> None:
        if sync.metadata.deletion_timestamp is not None:
            return
        try:
            await self._client.delete(key_ref(sync), DeleteOptions(uid=sync.metadata.uid))
        except NotFound:
            return

    def _controlled(self, assemblage: Assemblage) -> list[Sync]:
        found = [sync for sync in self._syncs.items() if _controls(assemblage, sync)]
        return sorted(found, key=lambda sync: sync.metadata.name)

    async def _say(self, assemblage: Assemblage, statuses: Sequence[EntryStatus], observed: int | None) -> None:
        before = assemblage.status
        status = AssemblageStatus(
            observed_generation=observed,
            agent_version=__version__,
            syncs=tuple(statuses),
            conditions=self._conditions(assemblage, statuses),
        )
        if _in_order(status) != _in_order(before):
            self._assemblages.learn(await write_status(self._client, assemblage, status))

    def _conditions(self, assemblage: Assemblage, statuses: Sequence[EntryStatus]) -> tuple[Condition, ...]:
        before, generation, now = assemblage.status.conditions, assemblage.metadata.generation, self._clock.now()
        failed = [each.name for each in statuses if each.state == "failed"]
        updating = [each.name for each in statuses if each.state == "updating"]
        if failed:
            return conditions.stalled(before, generation, now, f"failed: {', '.join(failed)}", "Failed")
        if updating:
            return conditions.reconciling(before, generation, now, f"on their way: {', '.join(updating)}")
        return conditions.ready(before, generation, now, f"all {len(statuses)} as they should be", "Succeeded")


def sync_spec(entry: Entry) -> SyncSpec:
    """The spec of the Sync that an entry becomes."""
    return SyncSpec(
        **{
            field.name: getattr(entry, field.name)
            for field in msgspec.structs.fields(SyncSpec)
            if field.name not in _NOT_OURS
        }
    )


def sync_document(assemblage: Assemblage, name: str, spec: SyncSpec) -> dict[str, Any]:
    """A Sync as its Assemblage applies it: every field that has a value, so that nobody's else stays in its place."""
    meta = assemblage.metadata
    fields = {
        field.encode_name: msgspec.to_builtins(value)
        for field in msgspec.structs.fields(SyncSpec)
        if field.name not in _NOT_OURS and (value := getattr(spec, field.name)) is not None
    }
    owner = {
        "apiVersion": assemblage.api_version,
        "kind": "Assemblage",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {"name": name, "namespace": meta.namespace, "ownerReferences": [owner]}
    return {"apiVersion": assemblage.api_version, "kind": "Sync", "metadata": metadata, "spec": fields}


def _ours(spec: SyncSpec) -> SyncSpec:
    return msgspec.structs.replace(spec, suspend=False)


def _controls(assemblage: Assemblage, sync: Sync) -> bool:
    return sync.metadata.namespace == assemblage.metadata.namespace and any(
        owner.controller and owner.uid == assemblage.metadata.uid for owner in sync.metadata.owner_references
    )


def _leaving(sync: Sync) -> EntryStatus:
    """A Sync whose entry has left, and that is still there: the hub waits for it."""
    return EntryStatus(
        name=sync.metadata.name,
        target=sync.spec.target,
        revision=sync.status.last_applied_revision,
        state="updating",
        readiness=sync.status.readiness,
        message="it is being removed",
    )


def _in_order(status: AssemblageStatus) -> AssemblageStatus:
    """With conditions in one order: the API server has an order of its own."""
    return msgspec.structs.replace(status, conditions=tuple(sorted(status.conditions, key=lambda each: each.type)))
