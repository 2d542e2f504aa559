"""Module: what its clusters are to run, and which of them may move now.

Two steps, each safe to die in. Here: the target is worked out and written down as a ControllerRevision, the pure
decision of `fleet.rollout` is recorded in status, onto the state that was read. There (`assembler`): only clusters that
the record admits get the target.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Cluster, Condition, Module, RolloutPolicy, Source, conditions, seconds
from starling.api.v1alpha1 import ExactGit, ModuleStatus, Rollout
from starling.controllers.entries import unmakeable
from starling.controllers.exact import NotFetched, exact_git
from starling.controllers.members import members_of
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.controllers.terminating import is_terminating
from starling.controllers.views import Proxy, changed_names
from starling.controllers.world import World
from starling.controllers.writing import CONFIRM, says_the_same, set_finalizer, write_status
from starling.errors import InputError, StarlingError
from starling.fleet import Decision, Facts, Member, ModuleRevision, decide, paths_used, target_of
from starling.kube import Client
from starling.rendering import Package
from starling.runtime import Controller, Group, Key, ObjectReference, Recorder, Result

__all__ = ["FINALIZER", "ModuleController"]

LOG = logging.getLogger(__name__)
FINALIZER: Final = "starling.dev/module"
GATHER: Final = 0.1
"""Seconds for which what clusters report is gathered, so that one look and one write do for many."""


class ModuleController:
    """Rolls Modules out. Mutable: content digests that were worked out before."""

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
        self._repositories = repositories
        self._secrets = secrets
        self._recorder = recorder
        self._clock = clock
        self._contents: dict[Key, tuple[object, dict[str, str]]] = {}

    def join(self, group: Group, world: World) -> None:
        """Run with a group."""
        self._world = world
        self._controller = group.controller(Controller("module", self.reconcile, at_once=8, clock=self._clock))
        world.modules.listen(lambda _, after: self._controller.add(key_of(after)) if after is not None else None)
        world.sources.listen(self._source_changed)
        world.policies.listen(self._policy_changed)
        world.clusters.listen(self._cluster_changed)
        world.proxies.listen(self._proxy_changed)

    async def reconcile(self, key: Key) -> Result | None:
        """Decide what one Module may do now, and write that down."""
        module = self._world.modules.get(key)
        if module is None:
            self._contents.pop(key, None)
            return None
        if module.metadata.deletion_timestamp is not None:
            return await self._remove(module)
        if FINALIZER not in module.metadata.finalizers:
            module = await set_finalizer(self._client, module, FINALIZER, present=True)
            self._world.modules.learn(module)
        aim, members = await self._aim(module), members_of(module, self._world)
        if aim.policy is None:
            await self._write(module, self._troubled(module, aim))
        else:
            aim, decision = self._decided(module, aim, aim.policy, members)
            await self._write(module, self._status(module, aim, decision))
            in_use = {each for member in members for each in (member.entry or "", member.reported)}
            await self._world.revisions.tidy(module, {aim.target, decision.last_good, *in_use})
            if aim.problem is None:
                return Result(decision.recheck_after)
        if aim.problem is not None and not isinstance(aim.problem, InputError | NotFetched):
            raise aim.problem  # and try again, ever more slowly
        return None

    # What is wanted

    async def _aim(self, module: Module) -> "Aim":
        """Where clusters are to go; if that can't be found out, where they were to go before, and nobody moves."""
        status, policy = module.status, None
        try:
            policy = self._policy(module)
            made = await self._wanted(module)
            if self._world.revisions.get(module, made.target) is None:
                await self._world.revisions.ensure(module, made)
        except StarlingError as error:
            paused = msgspec.structs.replace(policy, paused=True) if policy is not None else None
            return Aim(status.target, status.revision, status.source_revision, paused, error)
        if made.target == status.target:
            return Aim(made.target, status.revision, made.revision, policy)
        known = self._world.revisions.get(module, made.target) or made
        return Aim(made.target, known.revision, made.revision, policy)

    def _decided(
        self, module: Module, aim: "Aim", policy: Rollout, members: Sequence[Member]
    ) -> tuple["Aim", Decision]:
        """What may be done; clusters whose entry can't be made are left as they are, and told of."""
        held: dict[str, InputError] = {}
        while True:
            able = [replace(each, mode="Cordoned") if each.name in held else each for each in members]
            decision = decide(policy, self._facts(module, aim.target), able, self._clock.now())
            if not (wrong := self._unmakeable(module, aim.target, decision)):
                problem = aim.problem or next(iter(held.values()), None)
                return replace(aim, problem=problem), decision
            held |= wrong

    def _unmakeable(self, module: Module, target: str, decision: Decision) -> dict[str, InputError]:
        namespace, revision = module.metadata.namespace, self._world.revisions.get(module, target)
        if revision is None:
            return {}
        new = [each for each in decision.admitted if each not in module.status.admitted]
        names = [each.cluster for each in new if not each.leave and not each.restore]
        clusters = self._world.clusters
        return unmakeable(module.metadata.name, revision, names, lambda name: clusters.get(Key(namespace, name)))

    def _policy(self, module: Module) -> Rollout:
        spec, namespace = module.spec, module.metadata.namespace
        policy = spec.rollout or Rollout()
        if spec.policy_ref is not None:
            found = self._world.policies.get(Key(namespace, spec.policy_ref.name))
            if found is None:
                raise InputError(
                    f"there is no RolloutPolicy {namespace}/{spec.policy_ref.name}; nothing moves",
                    hint="create it, or name another in policyRef",
                )
            policy = found.spec
        unknown = {
            "stages": policy.stages,
            "windows": policy.windows,
            "jitter": policy.jitter not in ("", "0s"),
            "onFailure": policy.on_failure != "Pause",
            "supersede": policy.supersede != "Now",
            "unreachable": policy.unreachable != "Skip",
        }
        if wanted := [name for name, given in unknown.items() if given]:
            raise InputError(
                f"this version of Starling can't roll out with {', '.join(wanted)} yet; nothing moves",
                hint="maxConcurrent, maxFailures, timeout and paused are what it knows",
            )
        return policy

    async def _wanted(self, module: Module) -> ModuleRevision:
        """The target as it is wanted now, and what it stands for."""
        namespace, template = module.metadata.namespace, module.spec.sync
        source = self._world.sources.get(Key(namespace, template.source.name or ""))
        git, revision = exact_git(module, source)
        artifact = source.status.artifact if source is not None else None
        known = artifact.digest if artifact is not None and artifact.revision == revision else ""
        contents = await self._contents_of(module, git, known)
        return ModuleRevision(
            template=template,
            overrides=module.spec.overrides,
            source=git,
            revision=revision,
            target=target_of(module.spec, contents, git),
        )

    async def _contents_of(self, module: Module, git: ExactGit, known: str) -> dict[str, str]:
        """What each path comes to; worked out once for each version that a Module is at."""
        package, key = _package(module), key_of(module)
        place = (git.url, git.commit, known, git.ignore, git.submodules, package)
        contents = self._contents.get(key, (place, {}))
        contents = contents if contents[0] == place else (place, {})
        for path in paths_used(module.spec):
            if path not in contents[1]:
                credentials = await self._secrets.credentials(key.namespace, git.secret_ref)
                contents[1][path] = await self._repositories.content(git, credentials, path, package, known=known)
        self._contents[key] = contents
        return contents[1]

    def _facts(self, module: Module, target: str) -> Facts:
        status = module.status
        return Facts(
            target=target,
            previous=status.target,
            last_good=status.last_good,
            admission=status.admission,
            admitted=status.admitted,
            confirmed=module.metadata.annotations.get(CONFIRM, ""),
            salt=f"{module.metadata.uid}/{module.metadata.generation}",
            suspended=module.spec.suspend,
        )

    # What comes of it

    def _troubled(self, module: Module, aim: "Aim") -> ModuleStatus:
        """All as it was, with what is wrong: without a policy nothing can be decided."""
        before, generation = module.status, module.metadata.generation
        assert aim.problem is not None
        told = conditions.failed(before.conditions, generation, self._clock.now(), aim.problem)
        return msgspec.structs.replace(before, observed_generation=generation, conditions=told)

    def _status(self, module: Module, aim: "Aim", decision: Decision) -> ModuleStatus:
        before, generation, now = module.status, module.metadata.generation, self._clock.now()
        told: tuple[Condition, ...]
        if aim.problem is not None:
            told = conditions.failed(before.conditions, generation, now, aim.problem)
        elif decision.phase == "Succeeded":
            told = conditions.ready(before.conditions, generation, now, decision.message, decision.phase)
        else:
            told = conditions.reconciling(before.conditions, generation, now, decision.message, decision.phase)
        return msgspec.structs.replace(
            before,
            observed_generation=generation,
            conditions=told,
            target=aim.target,
            revision=aim.revision,
            source_revision=aim.source_revision,
            phase=decision.phase,
            last_good=decision.last_good,
            admission=decision.admission,
            admitted=decision.admitted,
            summary=decision.summary,
        )

    async def _write(self, module: Module, status: ModuleStatus) -> None:
        before = module.status
        if says_the_same(before, status):
            return
        # Onto the state that was read: an old leader, or a stale cache, may not admit anybody.
        onto = module.metadata.resource_version
        self._world.modules.learn(await write_status(self._client, module, status, onto=onto))
        self._tell(module, before, status)

    def _tell(self, module: Module, before: ModuleStatus, after: ModuleStatus) -> None:
        about = ObjectReference.of(module)
        if after.target != before.target:
            self._recorder.event(about, "NewTarget", f"{after.revision} is to be rolled out")
        new = {each.cluster for each in after.admitted} - {each.cluster for each in before.admitted}
        if new:
            names = ", ".join(sorted(new)[:10]) + (f" and {len(new) - 10} more" if len(new) > 10 else "")
            self._recorder.event(about, "Admitted", f"{names} may move to {after.revision}")
        told = {each.message for each in before.conditions}
        for each in after.conditions:
            if each.type == "Stalled" and each.message not in told:
                self._recorder.event(about, each.reason, each.message, warning=True)
        if after.phase != before.phase and after.phase in ("Succeeded", "Degraded", "Waiting"):
            message = next((each.message for each in after.conditions if each.type == "Ready"), after.phase)
            self._recorder.event(about, after.phase, message, warning=after.phase == "Degraded")

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
        left = [each.name for each in members if each.entry is not None and (each.selected or each.admission > 0)]
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
        return Result(waits) if waits > 0 and not left else None

    def _patience_left(self, module: Module) -> float:
        """For how long clusters that have lost their entry may take to say so: none may block it for ever."""
        since = module.metadata.deletion_timestamp or self._clock.now()
        timeout = module.spec.rollout.timeout if module.spec.rollout is not None else Rollout().timeout
        return seconds(timeout) - (self._clock.now() - since).total_seconds()

    # What has changed

    def _source_changed(self, before: Source | None, after: Source | None) -> None:
        source = after or before
        assert source is not None
        if before is not None and after is not None and _offer(before) == _offer(after):
            return
        self._add(
            each for each in self._of(source.metadata.namespace) if each.spec.sync.source.name == source.metadata.name
        )

    def _policy_changed(self, before: RolloutPolicy | None, after: RolloutPolicy | None) -> None:
        policy = after or before
        assert policy is not None
        modules = self._of(policy.metadata.namespace)
        self._add(
            each
            for each in modules
            if each.spec.policy_ref is not None and each.spec.policy_ref.name == policy.metadata.name
        )

    def _cluster_changed(self, before: Cluster | None, after: Cluster | None) -> None:
        cluster = after or before
        assert cluster is not None
        if before is not None and after is not None and _standing(before) == _standing(after):
            return
        self._add(self._of(cluster.metadata.namespace), GATHER)

    def _proxy_changed(self, before: Proxy | None, after: Proxy | None) -> None:
        proxy = after or before
        assert proxy is not None
        namespace = proxy.metadata.namespace
        if before is None or after is None or before.adopted != after.adopted:
            self._add(self._of(namespace), GATHER)
            return
        names = changed_names(before, after)
        if before.acknowledged != after.acknowledged:
            names |= {each.metadata.name for each in self._of(namespace) if _awaits(each, proxy.metadata.name)}
        for name in names:
            self._controller.add_after(Key(namespace, name), GATHER)

    def _of(self, namespace: str) -> Sequence[Module]:
        return [each for each in self._world.modules.items() if each.metadata.namespace == namespace]

    def _add(self, modules: Iterable[Module], after: float = 0.0) -> None:
        for module in modules:
            if after:
                self._controller.add_after(key_of(module), after)
            else:
                self._controller.add(key_of(module))


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a Module's clusters are to go, and how, if that is known; `problem` is what someone should see to."""

    target: str
    revision: str
    source_revision: str
    policy: Rollout | None
    problem: StarlingError | None = None


def key_of(module: Module) -> Key:
    """Which Module."""
    return Key(module.metadata.namespace, module.metadata.name)


def _offer(source: Source) -> tuple[object, ...]:
    """What Modules take from a Source."""
    return source.status.artifact, source.spec.git, source.spec.ignore


def _awaits(module: Module, cluster: str) -> bool:
    """Whether it matters to a Module that a cluster has taken in what it was told."""
    return module.status.phase == "Removing" or any(each.cluster == cluster for each in module.status.admitted)


def _standing(cluster: Cluster) -> tuple[object, ...]:
    meta = cluster.metadata
    return meta.labels, meta.annotations, cluster.spec.mode, cluster.status.phase, meta.deletion_timestamp is None


def _package(module: Module) -> Package | None:
    said = module.spec.sync.package
    if said is None:
        return None
    return Package.HELM if said.helm is not None else Package.PLAIN if said.plain is not None else Package.KUSTOMIZE
