"""Assemblage: its entries become Syncs, and how these stand becomes its status."""

import contextlib
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from starling import __version__
from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, Condition, Sync, conditions
from starling.api.v1alpha1 import AssemblageStatus, Entry, EntryStatus, SyncSpec
from starling.controllers.afresh import afresh
from starling.controllers.writing import key_ref, says_the_same, set_finalizer, write_status
from starling.errors import InputError, StarlingError
from starling.fleet import entry_status, ready_of
from starling.kube import BadRequest, Client, DeleteOptions, Forbidden, Invalid, NotFound, TooLarge
from starling.runtime import Controller, Group, Informer, Key, Result, key_of

__all__ = ["FINALIZER", "AssemblageController", "Outcome", "again", "sync_document", "sync_spec", "told"]

FINALIZER: Final = "starling.dev/assemblage"
_NOT_OURS: Final = frozenset({"cluster", "suspend"})
"""Fields of a Sync's spec that stay as people on the cluster have them; one that names a cluster is refused."""

REFUSALS: Final = (BadRequest, Forbidden, InputError, Invalid, TooLarge)
"""What the same write meets again until someone changes what is wrong: a policy, a quota, the kind, the entry."""

REFUSED_LOOK: Final = 60.0
"""Seconds until it is tried again all the same: nobody tells us when they have."""

LONGEST_RETRY: Final = 30.0
"""Seconds; each change of a Sync is a try too, so that many fail soon while one entry can't be written."""

LONGEST_MESSAGE: Final = 1024


class Outcome(NamedTuple):
    """How one entry stands, and what went wrong with its Sync just now."""

    status: EntryStatus
    error: StarlingError | None = None


class AssemblageController:
    """Keeps Syncs as their Assemblage says. What it knows is in the informers."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock

    def join(self, group: Group, assemblages: Informer[Assemblage], syncs: Informer[Sync]) -> None:
        """Run with a group, on informers of all namespaces."""
        self._assemblages, self._syncs = assemblages, syncs
        controller = group.controller(
            Controller("assemblage", self.reconcile, longest_retry=LONGEST_RETRY, clock=self._clock)
        )

        def sync_changed(before: Sync | None, after: Sync | None) -> None:
            sync = after or before
            for assemblage in assemblages.items():
                if sync is not None and assemblage.metadata.namespace == sync.metadata.namespace:
                    controller.add(key_of(assemblage))

        def assemblage_changed(before: Assemblage | None, after: Assemblage | None) -> None:
            if after is not None and (before is None or _bearing(before) != _bearing(after)):
                controller.add(key_of(after))

        assemblages.listen(assemblage_changed)
        syncs.listen(sync_changed)

    async def reconcile(self, key: Key) -> Result | None:
        """Write, take away, or let go Syncs, and say how they stand; only then what went wrong with some of them."""
        assemblage = self._assemblages.get(key)
        if assemblage is None:
            return None
        deleting = assemblage.metadata.deletion_timestamp is not None
        if deleting and FINALIZER not in assemblage.metadata.finalizers:
            return None
        if deleting or assemblage.spec.released:
            return again(await self._release(assemblage, deleting=deleting))
        if FINALIZER not in assemblage.metadata.finalizers:
            assemblage = await set_finalizer(self._client, assemblage, FINALIZER, present=True)
            self._assemblages.learn(assemblage)
        outcomes = await self._keep(assemblage)
        if outcomes is None:
            return None
        await self._say(assemblage, [each.status for each in outcomes], assemblage.metadata.generation)
        return again(outcomes)

    async def _keep(self, assemblage: Assemblage) -> list[Outcome] | None:
        """Have a Sync for each entry and none besides; how all of them stand. None: there is a newer Assemblage."""
        namespace, outcomes = assemblage.metadata.namespace, []
        for entry in assemblage.spec.syncs:
            sync = self._syncs.get(Key(namespace, entry.name))
            outcomes.append(await _tried(self._keep_one(assemblage, entry, sync), entry_status(entry, sync)))
        named = {entry.name for entry in assemblage.spec.syncs}
        left = [sync for sync in self._controlled(assemblage) if sync.metadata.name not in named]
        if any(sync.metadata.deletion_timestamp is None for sync in left) and not await self._is_newest(assemblage):
            return None
        return outcomes + [await _tried(self._delete(sync), _leaving(sync)) for sync in left]

    async def _is_newest(self, assemblage: Assemblage) -> bool:
        """Whether it still says this; else we know what it says now, and are called again.

        Who led before may have an old one at hand, and take a Sync for left that the new leader has just made.
        """
        found = await afresh(self._client, Assemblage, key_of(assemblage))
        if found is None:
            return False
        self._assemblages.learn(found)
        return _wanted(found) == _wanted(assemblage)

    async def _keep_one(self, assemblage: Assemblage, entry: Entry, sync: Sync | None) -> EntryStatus:
        namespace = assemblage.metadata.namespace
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

    async def _release(self, assemblage: Assemblage, *, deleting: bool) -> list[Outcome]:
        """Let go of everything, objects staying as they are: nothing is pruned because someone left."""
        left = [await _tried(self._let_go(sync), _leaving(sync)) for sync in self._controlled(assemblage)]
        meta, known = assemblage.metadata, assemblage.status.observed_generation
        await self._say(assemblage, [each.status for each in left], known if left else meta.generation)
        if deleting and not left:
            current = self._assemblages.get(key_of(assemblage)) or assemblage
            self._assemblages.learn(await set_finalizer(self._client, current, FINALIZER, present=False))
        return left

    async def _let_go(self, sync: Sync) -> EntryStatus:
        if sync.spec.deletion_policy != "Orphan":
            patch = {"metadata": {"uid": sync.metadata.uid}, "spec": {"deletionPolicy": "Orphan"}}
            self._syncs.learn((await self._client.merge_patch(key_ref(sync), patch)).decode(Sync))
        return await self._delete(sync)

    async def _delete(self, sync: Sync) -> EntryStatus:
        if sync.metadata.deletion_timestamp is None:
            with contextlib.suppress(NotFound):
                await self._client.delete(key_ref(sync), DeleteOptions(uid=sync.metadata.uid))
        return _leaving(sync)

    def _controlled(self, assemblage: Assemblage) -> list[Sync]:
        found = [sync for sync in self._syncs.items() if _controls(assemblage, sync)]
        return sorted(found, key=lambda sync: sync.metadata.name)

    async def _say(self, assemblage: Assemblage, statuses: Sequence[EntryStatus], observed: int | None) -> None:
        status = AssemblageStatus(
            observed_generation=observed,
            agent_version=__version__,
            syncs=tuple(statuses),
            ready=ready_of(statuses),
            conditions=self._conditions(assemblage, statuses),
        )
        if not says_the_same(assemblage.status, status):
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


async def _tried(work: Awaitable[EntryStatus], known: EntryStatus) -> Outcome:
    """How an entry stands after this: what goes wrong with one is told of that one, and the others go on."""
    try:
        return Outcome(await work)
    except StarlingError as error:
        return Outcome(told(known, error), error)


def told(known: EntryStatus, error: StarlingError) -> EntryStatus:
    """How an entry stands whose Sync couldn't be written: failed if that is refused, else on its way."""
    message = (f"{error.message}; {error.hint}" if error.hint else error.message)[:LONGEST_MESSAGE]
    if isinstance(error, REFUSALS):
        return msgspec.structs.replace(known, state="failed", readiness="Failed", message=message)
    return msgspec.structs.replace(known, state="updating", message=message)


def again(outcomes: Iterable[Outcome]) -> Result | None:
    """When to come again: raises what may do the next time; a refusal is for someone to mend, so later."""
    errors = [each.error for each in outcomes if each.error is not None]
    for error in errors:
        if not isinstance(error, REFUSALS):
            raise error
    return Result(REFUSED_LOOK) if errors else None


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
    return msgspec.structs.replace(spec, suspend=False, cluster=None)


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


def _wanted(assemblage: Assemblage) -> tuple[object, ...]:
    """What an Assemblage says, and that it is to be heeded."""
    return assemblage.metadata.uid, assemblage.metadata.deletion_timestamp is not None, assemblage.spec


def _bearing(assemblage: Assemblage) -> tuple[object, ...]:
    """What of an Assemblage there is something to do about: not how things stand, which we say ourselves.

    Which spec that is about counts all the same: an API server that was restored knows an older one.
    """
    meta = assemblage.metadata
    deleting = meta.deletion_timestamp is not None
    return meta.uid, meta.generation, deleting, meta.finalizers, assemblage.status.observed_generation
