"""SyncGroup: several things for the clusters that a selector picks, rolled out as Modules are.

The same two steps: what `fleet.rollout` decides is recorded in status, onto the state that was read, and only then do
Syncs change that go from the hub to clusters it connects to. To clusters that dial in, the assembler brings what the
record admits. A group without a selector is for the hub itself, all at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Cluster, Module, SyncGroup, conditions
from starling.api.v1alpha1 import Entry, GroupSync, ModuleSpec, Rollout, RolloutSummary, SyncGroupStatus, SyncTemplate
from starling.api.v1alpha1.fields import LabelSelector
from starling.controllers.causes import cause_of
from starling.controllers.entries import unmakeable
from starling.controllers.exact import NotFetched
from starling.controllers.gates import Gates
from starling.controllers.group_syncs import (
    THE_HUB,
    GroupSyncs,
    SyncView,
    direct_entry,
    entry_of,
    key_of_group,
    orphaned,
)
from starling.controllers.groups import group_members, part_claims, parts_in
from starling.controllers.removing import AWAY_AFTER, long_deleted
from starling.controllers.repositories import Repositories
from starling.controllers.rolling import Aim, Rollouts, explained, order_of, recorded, tell, troubled
from starling.controllers.secrets import Secrets
from starling.controllers.terminating import is_terminating
from starling.controllers.views import Proxy, changed_names
from starling.controllers.waking import GATHER, Waking
from starling.controllers.wanted import Wanted
from starling.controllers.world import World
from starling.controllers.writing import says_the_same, set_finalizer, write_status
from starling.errors import InputError
from starling.fleet import (
    Decision,
    GroupRevision,
    Member,
    ModuleRevision,
    assemble,
    group_revision,
    held_parts,
    part_name,
)
from starling.kube import Client, NotFound
from starling.runtime import Controller, Group, Key, Recorder, Result, key_of

__all__ = ["FINALIZER", "SyncGroupController"]

FINALIZER: Final = "starling.dev/syncgroup"
MOST_NAMED: Final = 5
LOOK_AGAIN: Final = 60.0
"""Seconds between looks whether a Sync that is in a group's way, and of which nobody tells, is still there."""


class SyncGroupController:
    """Rolls SyncGroups out. Mutable: what someone has put in the way of a group's Syncs."""

    def __init__(
        self,
        client: Client,
        repositories: Repositories,
        secrets: Secrets,
        recorder: Recorder,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._repositories, self._secrets = repositories, secrets
        self._recorder = recorder
        self._clock = clock
        self._in_the_way: dict[Key, InputError] = {}

    def join(self, group: Group, world: World) -> None:
        """Run with a group of controllers."""
        self._world = world
        gates = Gates(self._secrets, clock=self._clock)
        group.task(gates.run)
        self._rollouts = Rollouts(gates, world.policies, clock=self._clock)
        self._wanted = Wanted(self._repositories, self._secrets, world.sources)
        self._controller = group.controller(Controller("syncgroup", self.reconcile, at_once=8, clock=self._clock))
        self._waking = Waking(self._controller, world.groups, lambda it: it.spec.syncs)
        self._waking.listen(world)
        world.proxies.listen(self._proxy_changed)
        world.group_syncs.informer.listen(self._sync_changed)

    async def reconcile(self, key: Key) -> Result | None:
        """Decide what one group may do now, write that down, and have it done."""
        group = self._world.groups.get(key)
        if group is None:
            self._wanted.forget(key)
            self._rollouts.forget(key)
            self._in_the_way.pop(key, None)
            return None
        if group.metadata.deletion_timestamp is not None:
            return await self._remove(group)
        if FINALIZER not in group.metadata.finalizers:
            group = await set_finalizer(self._client, group, FINALIZER, present=True)
            self._world.groups.learn(group)
        members = group_members(group, self._world)
        wanted = partial(self._revision, group)
        aim = await self._rollouts.aim(group, members, self._world.group_revisions, wanted)
        generation, now = group.metadata.generation, self._clock.now()
        if aim.policy is None:
            assert aim.problem is not None
            await self._write(group, troubled(group.status, aim.problem, generation, now))
        elif group.spec.selector is None:
            await self._keep_here(group, aim)
        else:
            return await self._roll_out(group, aim, aim.policy, members)
        if aim.problem is not None and not isinstance(aim.problem, InputError | NotFetched):
            raise aim.problem  # and try again, ever more slowly
        return None

    async def _roll_out(self, group: SyncGroup, aim: Aim, policy: Rollout, members: Sequence[Member]) -> Result:
        key, world = key_of(group), self._world
        problem = aim.problem or self._in_the_way.get(key)
        aim, decision = self._rollouts.decide(
            group,
            replace(aim, problem=problem),
            members,
            policy=policy,
            known=world.group_revisions.of(group),
            unmakeable=lambda decision: self._unmakeable(group, decision),
            again=lambda: self._controller.add(key),
        )
        status = recorded(group.status, aim, decision, group.metadata.generation, self._clock.now())
        group = await self._write(group, await explained(group.status, status, partial(self._cause, group)))
        in_the_way = await world.group_syncs.write_all(group, self._syncs(group))
        await self._let_go(group)
        await self._tidy(group, {each for member in members for each in (member.entry or "", member.reported)})
        if aim.problem is not None and not isinstance(aim.problem, InputError | NotFetched):
            raise aim.problem  # and try again, ever more slowly
        return Result(self._noted(key, in_the_way, decision.recheck_after))

    async def _cause(self, group: SyncGroup, cluster: str) -> str:
        name, key = group.metadata.name, Key(group.metadata.namespace, cluster)
        syncs = [each.metadata.name for each in self._world.group_syncs.of(group).get(cluster, {}).values()]
        entries = {part_name(name, each.name) for each in group.spec.syncs}
        return await cause_of(self._client, key, () if syncs else entries, syncs)

    def _noted(self, key: Key, in_the_way: InputError | None, recheck_after: float | None) -> float | None:
        """When to look again: at once to tell what is new, now and then whether what is in the way has gone."""
        before = self._in_the_way.pop(key, None)
        if in_the_way is not None:
            self._in_the_way[key] = in_the_way
        if str(in_the_way) != str(before):
            return GATHER
        return recheck_after if in_the_way is None else min(recheck_after or LOOK_AGAIN, LOOK_AGAIN)

    async def _tidy(self, group: SyncGroup, in_use: set[str]) -> None:
        status = group.status
        await self._world.group_revisions.tidy(group, in_use | {status.target, status.last_good, status.rollback_to})

    async def _let_go(self, group: SyncGroup) -> None:
        """Delete Syncs of clusters that are gone, or that dial in by now: what they synced there stays.

        The Cluster is asked for anew: what is deleted because a cache is behind would take everything along.
        """
        for name, parts in list(self._world.group_syncs.of(group).items()):
            key = Key(group.metadata.namespace, name)
            known = self._world.clusters.get(key)
            if known is not None and known.spec.push is not None:
                continue
            try:
                there = (await self._client.get(Cluster.declaration.resource.ref(name, key.namespace))).decode(Cluster)
            except NotFound:
                there = None
            if there is None or there.spec.push is None:
                for sync in list(parts.values()):
                    await self._world.group_syncs.delete(sync)

    def _unmakeable(self, group: SyncGroup, decision: Decision) -> dict[str, InputError]:
        """Those clusters that dial in for which an entry can't be made; the others' Syncs tell by themselves."""
        namespace, world = group.metadata.namespace, self._world
        found: dict[str, InputError] = {}
        for each in decision.admitted:
            cluster = world.clusters.get(Key(namespace, each.cluster))
            moves = each not in group.status.admitted and not each.leave and not each.restore
            revision = world.group_revisions.get(group, each.target)
            if not moves or revision is None or cluster is None or cluster.spec.pull is None:
                continue
            for part, made in revision.parts.items():
                called = part_name(group.metadata.name, part)
                found |= unmakeable(called, made, [each.cluster], lambda _, it=cluster: it)  # type: ignore[misc]
        return found

    # What is wanted

    async def _revision(self, group: SyncGroup) -> GroupRevision:
        return group_revision({each.name: await self._wanted.by(_part(group, each)) for each in group.spec.syncs})

    def _syncs(self, group: SyncGroup) -> dict[str, dict[str, Entry]]:
        """The Syncs that each cluster is to have that the hub connects to, by what is recorded."""
        world, found = self._world, {}
        there = world.group_syncs.of(group)
        for cluster in world.clusters.items():
            meta = cluster.metadata
            ours = meta.name in there or any(each.cluster == meta.name for each in group.status.admitted)
            if meta.namespace != group.metadata.namespace or cluster.spec.push is None or not ours:
                continue
            if cluster.spec.mode == "Active":
                found[meta.name] = self._parts(group, cluster, there.get(meta.name, {}).values())
        return found

    def _parts(self, group: SyncGroup, cluster: Cluster, there: Iterable[SyncView]) -> dict[str, Entry]:
        def make(part: str, revision: ModuleRevision) -> Entry:
            return direct_entry(group.metadata.name, part, revision)

        parts = parts_in(group, self._world, cluster, None)
        claims = part_claims(group, self._world, cluster, parts, make)
        names = {part_name(group.metadata.name, part): part for part in (*parts, *(name for name, _ in claims))}
        entries = assemble([entry_of(sync) for sync in there], [claim for _, claim in claims])
        return {names[entry.name]: entry for entry in entries}

    # A group for the hub itself

    async def _keep_here(self, group: SyncGroup, aim: Aim) -> None:
        """Have the hub's own Syncs be what is wanted, all at once, and tell how they stand."""
        revision = self._world.group_revisions.get(group, aim.target)
        syncs: GroupSyncs = self._world.group_syncs
        if revision is not None and not group.spec.suspend and aim.problem is None:
            name, parts = group.metadata.name, revision.parts
            await syncs.write(group, THE_HUB, {part: direct_entry(name, part, it) for part, it in parts.items()})
        group = await self._write(group, self._standing_here(group, aim, revision))
        await self._tidy(group, {sync.spec.target for sync in syncs.of(group).get(THE_HUB, {}).values()})

    def _standing_here(self, group: SyncGroup, aim: Aim, revision: GroupRevision | None) -> SyncGroupStatus:
        there = self._world.group_syncs.of(group).get(THE_HUB, {})
        wanted = frozenset(revision.parts) if revision is not None else frozenset[str]()
        held = held_parts([sync.part for sync in there.values()], lambda _: wanted)
        at_it = held.entry == held.reported == aim.target
        done, failed = at_it and held.state == "succeeded", at_it and held.state == "failed"
        before, generation, now = group.status, group.metadata.generation, self._clock.now()
        phase = "Suspended" if group.spec.suspend else "Succeeded" if done else "Failed" if failed else "Progressing"
        say = conditions.ready if done else conditions.reconciling
        told = say(before.conditions, generation, now, f"{len(there)} of {len(wanted)} Syncs are here", phase)
        if aim.problem is not None:
            told = conditions.failed(before.conditions, generation, now, aim.problem)
        return msgspec.structs.replace(
            before,
            observed_generation=generation,
            conditions=told,
            target=aim.target,
            revision=aim.revision,
            source_revision=aim.source_revision,
            phase=phase,
            ended=aim.target if done else before.ended,
            last_good=aim.target if done else before.last_good,
            failed_target=aim.target if failed else "",
            order=order.id if (order := order_of(group)) is not None else before.order,
            summary=RolloutSummary(
                total=1, succeeded=int(done), failed=int(failed), updating=int(not done and not failed),
                ready=f"{int(done)}/1",
            ),
        )  # fmt: skip

    async def _write(self, group: SyncGroup, status: SyncGroupStatus) -> SyncGroup:
        if says_the_same(group.status, status):
            return group
        # Onto the state that was read: an old leader, or a stale cache, may not admit anybody.
        onto = group.metadata.resource_version
        written = await write_status(self._client, group, status, onto=onto)
        self._world.groups.learn(written)
        tell(self._recorder, group, group.status, status)
        return written

    # Removal

    async def _remove(self, group: SyncGroup) -> Result | None:
        """Have every cluster lose what it has; drop our finalizer when all Syncs are gone, and all entries.

        If the kind or the namespace is going away, nobody meant to take this off the clusters: then it stays there.
        """
        if FINALIZER not in group.metadata.finalizers:
            return None
        if group.status.phase != "Removing" and await is_terminating(self._client, SyncGroup, group.metadata.namespace):
            await set_finalizer(self._client, group, FINALIZER, present=False)
            return None
        syncs = [each for parts in self._world.group_syncs.of(group).values() for each in parts.values()]
        having = [each for each in group_members(group, self._world) if each.entry is not None]
        given_up = bool(orphaned(group)) and long_deleted(group, self._clock.now())
        dialled = [each for each in having if self._dials(group, each) and (each.reachable or not given_up)]
        if group.status.phase == "Removing" and not syncs and not dialled:
            await set_finalizer(self._client, group, FINALIZER, present=False)
            return None
        generation, now = group.metadata.generation, self._clock.now()
        message = f"being removed: {len(syncs)} Syncs and {len(dialled)} clusters that dial in are left"
        if frozen := self._frozen(group, {sync.cluster for sync in syncs} | {each.name for each in dialled}):
            message += f"; {', '.join(frozen[:MOST_NAMED])} frozen, `starling cluster activate` lets that go on"
        told = conditions.reconciling(group.status.conditions, generation, now, message, "Removing")
        status = msgspec.structs.replace(
            group.status, phase="Removing", conditions=told, observed_generation=generation
        )
        await self._write(group, status)
        for sync in syncs:
            await self._world.group_syncs.delete(sync, orphan=sync.part.name in orphaned(group))
        return Result(AWAY_AFTER) if dialled and orphaned(group) else None

    def _frozen(self, group: SyncGroup, names: Iterable[str]) -> list[str]:
        """Those of the clusters on which nothing is touched, and so nothing removed."""
        namespace = group.metadata.namespace
        found = (self._world.clusters.get(Key(namespace, name)) for name in sorted(names))
        return [each.metadata.name for each in found if each is not None and each.spec.mode == "Frozen"]

    def _dials(self, group: SyncGroup, member: Member) -> bool:
        cluster = self._world.clusters.get(Key(group.metadata.namespace, member.name))
        return cluster is not None and cluster.spec.pull is not None

    # What has changed

    def _proxy_changed(self, before: Proxy | None, after: Proxy | None) -> None:
        proxy = after or before
        assert proxy is not None
        named, cluster = changed_names(before, after), proxy.metadata.name
        groups = self._waking.of(proxy.metadata.namespace)
        if before is not None and after is not None and before.adopted == after.adopted:
            groups = [each for each in groups if _has_one_of(each, named) or _awaits(each, cluster)]
        self._waking.add(groups, GATHER)

    def _sync_changed(self, before: SyncView | None, after: SyncView | None) -> None:
        sync = after or before
        assert sync is not None
        if before is not None and after is not None and (before.part, before.spec) == (after.part, after.spec):
            return
        if (key := key_of_group(sync)) is not None:
            self._controller.add_after(key, GATHER)


def _has_one_of(group: SyncGroup, entries: set[str]) -> bool:
    return any(part_name(group.metadata.name, part.name) in entries for part in group.spec.syncs)


def _awaits(group: SyncGroup, cluster: str) -> bool:
    """Whether it matters to a group that a cluster has taken in what it was told."""
    return group.status.phase == "Removing" or any(each.cluster == cluster for each in group.status.admitted)


def _part(group: SyncGroup, template: GroupSync) -> Module:
    """A part as the Module that it would be."""
    fields = {field: getattr(template, field) for field in SyncTemplate.__struct_fields__}
    metadata = msgspec.structs.replace(group.metadata, name=part_name(group.metadata.name, template.name))
    selector = group.spec.selector or LabelSelector()
    return Module(metadata=metadata, spec=ModuleSpec(selector=selector, sync=SyncTemplate(**fields)))
