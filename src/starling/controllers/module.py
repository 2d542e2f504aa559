"""Module: what its clusters are to run, and which of them may move now.

Two steps, each safe to die in. Here: the target is worked out and written down as a ControllerRevision, the pure
decision of `fleet.rollout` is recorded in status, onto the state that was read. There (`assembler`): only clusters that
the record admits get the target.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Module, conditions, seconds
from starling.api.v1alpha1 import ModuleStatus, Rollout
from starling.controllers.causes import cause_of
from starling.controllers.entries import unmakeable
from starling.controllers.exact import NotFetched
from starling.controllers.gates import Gates
from starling.controllers.members import members_of
from starling.controllers.removing import AWAY_AFTER, long_deleted
from starling.controllers.repositories import Repositories
from starling.controllers.rolling import Aim, Rollouts, explained, recorded, tell, troubled
from starling.controllers.secrets import Secrets
from starling.controllers.terminating import is_terminating
from starling.controllers.views import Proxy, changed_names
from starling.controllers.waking import GATHER, Waking
from starling.controllers.wanted import Wanted
from starling.controllers.world import World
from starling.controllers.writing import says_the_same, set_finalizer, write_status
from starling.errors import InputError
from starling.fleet import Decision, Member
from starling.kube import Client
from starling.runtime import Controller, Group, Key, ObjectReference, Recorder, Result, key_of

__all__ = ["FINALIZER", "ModuleController"]

FINALIZER: Final = "starling.dev/module"


class ModuleController:
    """Rolls Modules out."""

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

    def join(self, group: Group, world: World) -> None:
        """Run with a group."""
        self._world = world
        gates = Gates(self._secrets, clock=self._clock)
        group.task(gates.run)
        self._rollouts = Rollouts(gates, world.policies, clock=self._clock)
        self._wanted = Wanted(self._repositories, self._secrets, world.sources)
        self._controller = group.controller(Controller("module", self.reconcile, at_once=8, clock=self._clock))
        self._waking = Waking(self._controller, world.modules, lambda it: (it.spec.sync,))
        self._waking.listen(world)
        world.proxies.listen(self._proxy_changed)

    async def reconcile(self, key: Key) -> Result | None:
        """Decide what one Module may do now, and write that down."""
        module = self._world.modules.get(key)
        if module is None:
            self._wanted.forget(key)
            self._rollouts.forget(key)
            return None
        if module.metadata.deletion_timestamp is not None:
            return await self._remove(module)
        if FINALIZER not in module.metadata.finalizers:
            module = await set_finalizer(self._client, module, FINALIZER, present=True)
            self._world.modules.learn(module)
        members = members_of(module, self._world)
        wanted = partial(self._wanted.by, module)
        aim = await self._rollouts.aim(module, members, self._world.revisions, wanted)
        generation, now = module.metadata.generation, self._clock.now()
        if aim.policy is None:
            assert aim.problem is not None
            await self._write(module, troubled(module.status, aim.problem, generation, now))
        else:
            aim, decision = self._decided(module, aim, aim.policy, members)
            status = recorded(module.status, aim, decision, generation, now)
            await self._write(module, await explained(module.status, status, partial(self._cause, module)))
            in_use = {each for member in members for each in (member.entry or "", member.reported)}
            in_use |= {aim.target, decision.course.last_good, decision.course.rollback_to}
            await self._world.revisions.tidy(module, in_use)
            if aim.problem is None:
                return Result(decision.recheck_after)
        if not isinstance(aim.problem, InputError | NotFetched):
            raise aim.problem  # and try again, ever more slowly
        return None

    # What is wanted

    def _decided(self, module: Module, aim: Aim, policy: Rollout, members: Sequence[Member]) -> tuple[Aim, Decision]:
        return self._rollouts.decide(
            module,
            aim,
            members,
            policy=policy,
            known=self._world.revisions.of(module),
            unmakeable=lambda decision: self._unmakeable(module, decision),
            again=lambda: self._controller.add(key_of(module)),
        )

    def _unmakeable(self, module: Module, decision: Decision) -> dict[str, InputError]:
        namespace, clusters = module.metadata.namespace, self._world.clusters
        new = [each for each in decision.admitted if each not in module.status.admitted]
        names: dict[str, list[str]] = {}
        for each in new:
            if not each.leave and not each.restore:
                names.setdefault(each.target, []).append(each.cluster)
        found: dict[str, InputError] = {}
        for target, some in names.items():
            if (revision := self._world.revisions.get(module, target)) is not None:
                name = module.metadata.name
                found |= unmakeable(name, revision, some, lambda cluster: clusters.get(Key(namespace, cluster)))
        return found

    async def _cause(self, module: Module, cluster: str) -> str:
        meta = module.metadata
        return await cause_of(self._client, Key(meta.namespace, cluster), {meta.name})

    # What comes of it

    async def _write(self, module: Module, status: ModuleStatus) -> None:
        before = module.status
        if says_the_same(before, status):
            return
        # Onto the state that was read: an old leader, or a stale cache, may not admit anybody.
        onto = module.metadata.resource_version
        self._world.modules.learn(await write_status(self._client, module, status, onto=onto))
        tell(self._recorder, module, before, status)

    # Removal

    async def _remove(self, module: Module) -> Result | None:
        """Have every cluster lose its entry, and drop our finalizer once those that are there have said so.

        If the kind or the namespace is going away, nobody meant to take this off the clusters: then it stays there.
        """
        if FINALIZER not in module.metadata.finalizers:
            return None
        namespace = module.metadata.namespace
        if module.status.phase != "Removing" and await is_terminating(self._client, Module, namespace):
            await set_finalizer(self._client, module, FINALIZER, present=False)
            return None
        members = members_of(module, self._world)
        having = [each for each in members if each.entry is not None and (each.selected or each.admission > 0)]
        given_up = module.spec.sync.deletion_policy == "Orphan" and long_deleted(module, self._clock.now())
        left = [each.name for each in having if each.reachable or not given_up]
        silent = [each.name for each in members if each.entry is None and each.listed and each.reachable]
        waits = self._patience_left(module) if silent else 0.0
        if module.status.phase == "Removing" and not left and waits <= 0:
            if silent:
                message = f"not waited for any longer: {', '.join(silent[:10])}"
                self._recorder.event(ObjectReference.of(module), "NotRemoved", message, warning=True)
            await set_finalizer(self._client, module, FINALIZER, present=False)
            return None
        generation, now = module.metadata.generation, self._clock.now()
        message = f"being removed from {len(left) + len(silent)} clusters"
        told = conditions.reconciling(module.status.conditions, generation, now, message, "Removing")
        status = msgspec.structs.replace(
            module.status, phase="Removing", conditions=told, observed_generation=generation
        )
        await self._write(module, status)
        if left and module.spec.sync.deletion_policy == "Orphan":
            return Result(AWAY_AFTER)
        return Result(waits) if waits > 0 and not left else None

    def _patience_left(self, module: Module) -> float:
        """For how long clusters that have lost their entry may take to say so: none may block it for ever."""
        since = module.metadata.deletion_timestamp or self._clock.now()
        try:
            policy = self._rollouts.policy_of(module)
        except InputError:  # it names one that isn't there
            policy = Rollout()
        return seconds(policy.timeout) - (self._clock.now() - since).total_seconds()

    # What has changed

    def _proxy_changed(self, before: Proxy | None, after: Proxy | None) -> None:
        proxy = after or before
        assert proxy is not None
        namespace = proxy.metadata.namespace
        if before is None or after is None or before.adopted != after.adopted:
            self._waking.add(self._waking.of(namespace), GATHER)
            return
        names = changed_names(before, after)
        if before.acknowledged != after.acknowledged:
            names |= {each.metadata.name for each in self._waking.of(namespace) if _awaits(each, proxy.metadata.name)}
        for name in names:
            self._controller.add_after(Key(namespace, name), GATHER)


def _awaits(module: Module, cluster: str) -> bool:
    """Whether it matters to a Module that a cluster has taken in what it was told."""
    return module.status.phase == "Removing" or any(each.cluster == cluster for each in module.status.admitted)
