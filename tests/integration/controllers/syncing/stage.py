"""An agent on a real cluster, a repository, and ways to look at what comes of them."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from starling.api import Assemblage, Cluster, Resource, Source, Sync
from starling.controllers.assemblage import AssemblageController
from starling.controllers.credentials import Secret
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import SECRETS, Secrets
from starling.controllers.sync import SyncController, SyncSettings, SyncWorld
from starling.engine import Engine, Limits
from starling.kube import AccessSource, Client, NotFound, Selection
from starling.kube import Resource as Served
from starling.rendering import Renderer
from starling.runtime import Group, Informer, Recorder
from starling.sources import ArtifactStore, FetchSettings, GitSources
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.sources.repositories import Repository
from tests.waiting import until

__all__ = ["Json", "Stage", "config_map", "world"]

Json = dict[str, Any]
ACCOUNTS = Served("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
BINDINGS = Served("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", namespaced=True)
EVENTS = Served("events.k8s.io", "v1", "Event", "events", namespaced=True)
SETTINGS = SyncSettings(limits=Limits(first_retry=0.2, longest_retry=1.0))
K = TypeVar("K", bound=Resource)
_numbers = itertools.count()


def world(client: Client, group: Group, namespace: str) -> SyncWorld:
    """All that matters to Syncs of a namespace, followed with a group."""

    def informer(kind: type[K]) -> Informer[K]:
        return group.informer(Informer(client, kind.declaration.resource, kind, Selection(namespace)))

    kubeconfigs = Selection(namespace, labels="starling.dev/kubeconfig=cluster")
    return SyncWorld(
        syncs=informer(Sync),
        sources=informer(Source),
        assemblages=informer(Assemblage),
        clusters=informer(Cluster),
        kubeconfigs=group.informer(Informer(client, SECRETS, Secret, kubeconfigs)),
    )


def config_map(name: str, **data: str) -> str:
    """A ConfigMap's manifest."""
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


class _Event(msgspec.Struct):
    reason: str = ""
    note: str = ""
    metadata: Json = {}


@dataclass
class Stage:
    """A namespace in which an agent works on what a repository has. Mutable: the folder that agents keep files in."""

    client: Client
    access: AccessSource
    namespace: str
    folder: Path
    home: str = field(default="agent")

    @cached_property
    def repository(self) -> Repository:
        """The repository."""
        return Repository(self.folder / "repo.git")

    async def make_account(self, name: str = "starling") -> None:
        """Have an account that may do anything in the namespace."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        await self.client.apply(ACCOUNTS.ref(name, self.namespace), account)
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        }
        await self.client.apply(BINDINGS.ref(name, self.namespace), binding)

    @asynccontextmanager
    async def agent(
        self, access: AccessSource | None = None, settings: SyncSettings = SETTINGS
    ) -> AsyncIterator[Engine]:
        """An agent at work in the namespace; each has a memory of its own, and shares files with those before it."""
        async with Client(access or self.access) as client:
            root = self.folder / self.home
            root.mkdir(exist_ok=True)
            store = ArtifactStore(root / "artifacts")
            sources = GitSources(root / "sources", store, FetchSettings(allow_file=True))
            repositories = Repositories(sources, store, Renderer())
            recorder = Recorder(client, "starling.dev/agent", "test")
            group = Group("agent")
            known = world(client, group, self.namespace)
            controller = SyncController(
                client, access or self.access, repositories, Secrets(client), recorder, settings=settings
            )
            engine = controller.join(group, known)
            AssemblageController(client).join(group, known.assemblages, known.syncs)
            group.task(recorder.run)
            task = asyncio.create_task(group.run())
            try:
                yield engine
            finally:
                task.cancel()
                results = await asyncio.gather(task, return_exceptions=True)
                assert isinstance(results[0], asyncio.CancelledError), results[0]

    # Writing

    def forget_files(self) -> None:
        """Have the next agent begin with an empty disk."""
        self.home = f"agent-{next(_numbers)}"

    def git(self, commit: str) -> Json:
        """A source: this commit of the repository."""
        return {"git": {"url": self.repository.url, "commit": commit, "tag": "main"}}

    def entry(self, name: str, commit: str, target: str, **more: Any) -> Json:
        """An entry of an Assemblage for a folder of the entry's name."""
        unit = f"prod/{self.namespace}/Module.{name}@c1"
        spec = {"name": name, "unit": unit, "target": target, "source": self.git(commit), "path": name}
        return {**spec, "package": {"plain": {}}, **more}

    async def assemble(self, *entries: Json, **more: Any) -> Assemblage:
        """Have an Assemblage of these entries."""
        spec = {"instance": "prod", "syncs": list(entries), **more}
        document = {"apiVersion": "starling.dev/v1alpha1", "kind": "Assemblage", "metadata": {"name": "prod"}}
        ref = Assemblage.declaration.resource.ref("prod", self.namespace)
        return (await self.client.apply(ref, document | {"spec": spec}, manager="hub")).decode(Assemblage)

    async def put_sync(self, name: str, commit: str, **more: Any) -> Sync:
        """Have a Sync of its own for a folder of its name."""
        spec = {"source": self.git(commit), "path": name, "package": {"plain": {}}, **more}
        document = {"apiVersion": "starling.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name}, "spec": spec}
        ref = Sync.declaration.resource.ref(name, self.namespace)
        return (await self.client.apply(ref, document, manager="user")).decode(Sync)

    async def delete_sync(self, name: str) -> None:
        """Delete a Sync, as a user does."""
        await self.client.delete(Sync.declaration.resource.ref(name, self.namespace))

    # Looking

    async def live(self, name: str) -> Json | None:
        """A ConfigMap as it is in the cluster."""
        try:
            found: Json = (await self.client.get(CONFIG_MAPS.ref(name, self.namespace))).json()
        except NotFound:
            return None
        return found

    async def has(self, name: str, data: Mapping[str, str] | None) -> None:
        """Wait until a ConfigMap's data is this; None: until it isn't there."""

        async def is_so() -> bool:
            live = await self.live(name)
            return (live.get("data", {}) if live is not None else None) == data

        await until(is_so)

    async def sync(self, name: str) -> Sync | None:
        """A Sync as it is."""
        try:
            return (await self.client.get(Sync.declaration.resource.ref(name, self.namespace))).decode(Sync)
        except NotFound:
            return None

    async def ready(self, name: str, target: str | None = None) -> Sync:
        """Wait until a Sync is ready, and says so of its newest spec."""

        async def is_ready() -> Sync | None:
            sync = await self.sync(name)
            if sync is None or sync.status.observed_generation != sync.metadata.generation:
                return None
            truth = {each.type: each.status for each in sync.status.conditions}
            return sync if truth == {"Ready": "True"} and target in (None, sync.status.target) else None

        return await self._seen(is_ready, name)

    async def says(self, name: str, text: str, kind: str = "Ready") -> Sync:
        """Wait until a condition of a Sync has this text in it."""

        async def is_said() -> Sync | None:
            sync = await self.sync(name)
            said = [each.message for each in sync.status.conditions if each.type == kind] if sync else []
            return sync if any(text in each for each in said) else None

        return await self._seen(is_said, name)

    async def gone(self, name: str) -> None:
        """Wait until there is no such Sync."""

        async def is_gone() -> bool:
            return await self.sync(name) is None

        await until(is_gone)

    async def assemblage(self) -> Assemblage | None:
        """The Assemblage as it is."""
        try:
            ref = Assemblage.declaration.resource.ref("prod", self.namespace)
            return (await self.client.get(ref)).decode(Assemblage)
        except NotFound:
            return None

    async def states(self, wanted: Mapping[str, tuple[str, str]]) -> Assemblage:
        """Wait until the Assemblage tells just these entries, each with target and state, of its newest spec."""
        found: Assemblage | None = None

        async def are_so() -> bool:
            nonlocal found
            found = await self.assemblage()
            assert found is not None
            told = {each.name: (each.target, each.state) for each in found.status.syncs}
            return told == wanted and found.status.observed_generation == found.metadata.generation

        try:
            await until(are_so)
        except TimeoutError:
            raise AssertionError(f"never so: {found and found.status}") from None
        assert found is not None
        return found

    async def events(self, name: str) -> list[tuple[str, str]]:
        """What was told of a Sync: reasons and notes."""
        found = await self.client.list(EVENTS, _Event, Selection(self.namespace))
        return [(each.reason, each.note) for each in found.items if each.metadata["name"].startswith(f"{name}.")]

    async def _seen(self, ask: Any, name: str) -> Sync:
        try:
            found: Sync = await until(ask)
        except TimeoutError:
            sync = await self.sync(name)
            raise AssertionError(f"never so: {sync and sync.status}") from None
        return found
