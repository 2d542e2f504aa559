"""The Syncs on the hub that SyncGroups are made of: one for each cluster that it connects to, and each part.

A Sync is a group's by an annotation, not by an ownerReference: if the kind or an object is deleted in a way that nobody
meant, the garbage collector would take along what runs on every cluster. The group's finalizer deletes them when it is
meant.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from starling.api import ObjectMeta, Sync, SyncGroup
from starling.api.meta import Fields
from starling.api.v1alpha1 import Entry, SourceReference, SyncSpec, SyncTemplate
from starling.controllers.revisions import GROUP_LABEL
from starling.errors import InputError
from starling.fleet import GROUP, PART, ModuleRevision, Part, part_name, sync_state
from starling.kube import AlreadyExists, Client, DeleteOptions, NotFound
from starling.objects import digest, short_digest
from starling.runtime import Informer, Key, key_of

__all__ = ["THE_HUB", "GroupSyncs", "SyncView", "direct_entry", "entry_of", "key_of_group", "orphaned"]

ADMISSION: Final = "starling.dev/admission"
AT_ONCE: Final = 16
LONGEST: Final = 253
THE_HUB: Final = ""
"""In place of a cluster's name: the hub itself."""

_SYNCS: Final = Sync.declaration.resource
_TEMPLATE: Final = SyncTemplate.__struct_fields__


class _Operation(Fields, frozen=True, kw_only=True):
    phase: Literal["Running", "Succeeded", "Failed"] = "Running"


class _Problem(Fields, frozen=True, kw_only=True):
    reason: str = ""


class _Status(Fields, frozen=True, kw_only=True):
    observed_generation: int = 0
    target: str = ""
    readiness: str = "Unknown"
    operation: _Operation | None = None
    problems: tuple[_Problem, ...] = ()


class SyncView(Fields, frozen=True, kw_only=True):
    """A Sync without the record of what is its own, which may be large."""

    metadata: ObjectMeta
    spec: SyncSpec
    status: _Status = _Status()

    @property
    def cluster(self) -> str:
        """The Cluster that it goes to; empty: where it is."""
        return self.spec.cluster.name if self.spec.cluster is not None else THE_HUB

    @property
    def part(self) -> Part:
        """How it stands, as a part of its group; what it says counts only if it is about what it is told."""
        meta, status = self.metadata, self.status
        about_it = status.observed_generation == meta.generation and status.target == self.spec.target
        phase = status.operation.phase if status.operation is not None else ""
        state = sync_state(status.readiness, phase, [each.reason for each in status.problems])
        admission = meta.annotations.get(ADMISSION, "")[:18]
        return Part(
            name=meta.labels.get(PART, ""),
            target=self.spec.target,
            admission=int(admission) if admission.isdecimal() else 0,
            reported=status.target,
            state=state if about_it else "updating",
        )


class GroupSyncs:
    """Reads them from an informer, and writes them. Mutable: by group and cluster, its parts."""

    def __init__(self, client: Client, informer: Informer[SyncView]) -> None:
        self._client = client
        self.informer = informer
        self._found: dict[Key, dict[str, dict[str, SyncView]]] = {}
        informer.listen(self._changed)

    def of(self, group: SyncGroup) -> Mapping[str, Mapping[str, SyncView]]:
        """A group's Syncs by cluster and part."""
        return self._found.get(key_of(group), {})

    async def write(self, group: SyncGroup, cluster: str, wanted: Mapping[str, Entry]) -> None:
        """Have a cluster's Syncs be these, by part: each onto the state that was read."""
        there = dict(self.of(group).get(cluster, {}))
        for part, entry in wanted.items():
            before = there.get(part)
            if before is None:
                await self._create(group, part, cluster, entry)
            elif before.metadata.deletion_timestamp is None and entry_of(before) != entry:
                await self._change(before, entry)
        stay = orphaned(group)
        for part, sync in there.items():
            if part not in wanted:
                await self.delete(sync, onto=sync.metadata.resource_version, orphan=part in stay)

    async def write_all(self, group: SyncGroup, wanted: Mapping[str, Mapping[str, Entry]]) -> InputError | None:
        """The same for many clusters, some at a time; gives what someone should see to, raises what to try again."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(cluster: str, entries: Mapping[str, Entry]) -> None:
            async with places:
                await self.write(group, cluster, entries)

        found = await asyncio.gather(*(one(*each) for each in wanted.items()), return_exceptions=True)
        errors = [each for each in found if isinstance(each, BaseException)]
        for error in errors:
            if not isinstance(error, InputError):
                raise error
        return next((each for each in errors if isinstance(each, InputError)), None)

    async def delete(self, sync: SyncView, onto: str = "", *, orphan: bool = False) -> None:
        """Delete one, if it is still that one, or that very state of it; its deletionPolicy says what goes along.

        With `orphan`, it says so first that its objects stay.
        """
        if sync.metadata.deletion_timestamp is not None:
            return
        ref = _SYNCS.ref(sync.metadata.name, sync.metadata.namespace)
        try:
            if orphan and sync.spec.deletion_policy != "Orphan":
                which = {"uid": sync.metadata.uid} | ({"resourceVersion": onto} if onto else {})
                patch = {"metadata": which, "spec": {"deletionPolicy": "Orphan"}}
                onto = (await self._client.merge_patch(ref, patch)).decode(SyncView).metadata.resource_version
            await self._client.delete(ref, DeleteOptions(uid=sync.metadata.uid, resource_version=onto))
        except NotFound:
            return

    async def _create(self, group: SyncGroup, part: str, cluster: str, entry: Entry) -> None:
        meta, declared = group.metadata, Sync.declaration
        name = _name(meta.name, part, cluster)
        body = {
            "apiVersion": f"{declared.group}/{declared.version}",
            "kind": declared.kind,
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "labels": {GROUP_LABEL: _label(meta.name), PART: part},
                "annotations": {GROUP: meta.name, ADMISSION: str(entry.admission)},
            },
            "spec": _spec(entry) | ({"cluster": {"name": cluster}} if cluster else {}),
        }
        try:
            answer = await self._client.create(_SYNCS, body, namespace=meta.namespace)
        except AlreadyExists as error:  # had it been the group's, the informer would know, or is about to
            raise InputError(
                f"Sync {meta.namespace}/{name} is in the way of SyncGroup {meta.name}, and isn't its own",
                hint="name the group otherwise; or delete the Sync, which takes along what it has synced",
            ) from error
        self.informer.learn(answer.decode(SyncView))

    async def _change(self, before: SyncView, entry: Entry) -> None:
        meta, spec = before.metadata, _spec(entry)
        gone = msgspec.to_builtins(before.spec).keys() - spec.keys() - {"cluster", "suspend"}
        patch = {
            "metadata": {"resourceVersion": meta.resource_version, "annotations": {ADMISSION: str(entry.admission)}},
            "spec": dict.fromkeys(gone) | _replacing(spec, msgspec.to_builtins(before.spec)),
        }
        answer = await self._client.merge_patch(_SYNCS.ref(meta.name, meta.namespace), patch)
        self.informer.learn(answer.decode(SyncView))

    def _changed(self, before: SyncView | None, after: SyncView | None) -> None:
        if before is not None:
            self._forget(before)
        if after is not None and after.part.name and (key := key_of_group(after)) is not None:
            self._found.setdefault(key, {}).setdefault(after.cluster, {})[after.part.name] = after

    def _forget(self, sync: SyncView) -> None:
        clusters = self._found.get(key_of_group(sync) or key_of(sync), {})
        parts = clusters.get(sync.cluster, {})
        parts.pop(sync.part.name, None)
        if not parts:
            clusters.pop(sync.cluster, None)


def orphaned(group: SyncGroup) -> frozenset[str]:
    """The parts whose objects stay when they are removed, by what the group says now."""
    return frozenset(each.name for each in group.spec.syncs if each.deletion_policy == "Orphan")


def direct_entry(group: str, part: str, revision: ModuleRevision) -> Entry:
    """A part as it stands in a Sync on the hub: with the hub's own Secret, and bindings for the agent to resolve."""
    fields = {field: getattr(revision.template, field) for field in _TEMPLATE}
    fields["source"] = SourceReference(git=revision.source)
    return Entry(name=part_name(group, part), unit="", target=revision.target, **fields)


def entry_of(sync: SyncView) -> Entry:
    """What a Sync on the hub says, to be compared with what it is to say."""
    fields = {field: getattr(sync.spec, field) for field in _TEMPLATE}
    group, part = sync.metadata.annotations.get(GROUP, ""), sync.part
    return Entry(name=part_name(group, part.name), unit="", target=part.target, admission=part.admission, **fields)


def key_of_group(sync: SyncView) -> Key | None:
    """The SyncGroup that a Sync says it is of."""
    name = sync.metadata.annotations.get(GROUP, "")
    return Key(sync.metadata.namespace, name) if name else None


def _spec(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(entry)
    return {key: value for key, value in found.items() if key not in ("name", "unit", "admission", "values")}


def _replacing(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch that leaves nothing of `before` behind: what mappings have no more is said to be gone."""
    found: dict[str, Any] = {}
    for key, value in after.items():
        there = before.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            found[key] = dict.fromkeys(there.keys() - value.keys()) | _replacing(value, there)
        else:
            found[key] = value
    return found


def _name(group: str, part: str, cluster: str) -> str:
    name = ".".join(each for each in (group, part, cluster) if each)
    return name if len(name) <= LONGEST else f"{name[:200]}.{short_digest(digest([group, part, cluster]))}"


def _label(name: str) -> str:
    return name if len(name) <= 63 else short_digest(digest(name))
