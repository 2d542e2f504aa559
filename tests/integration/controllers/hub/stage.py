"""A hub at work on a real API server as its own account, a repository, and what people do and see there."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from starling.api import (
    PLATFORM_NAMESPACE,
    Cluster,
    Module,
    ProxyAssemblage,
    Resource,
    RolloutPolicy,
    Source,
    SyncGroup,
)
from starling.api.installation import CONTROLLER
from starling.controllers.revisions import REVISIONS
from starling.controllers.secrets import SECRETS
from starling.controllers.tokens import request_token
from starling.kube import AccessSource, Client, NotFound, Selection, kubeconfig_data
from starling.kube import Resource as Served
from starling.local import LocalCluster
from starling.objects import GroupVersionKind
from starling.operator import Settings, run_controller
from starling.runtime import Key
from tests.integration.sources.repositories import Repository
from tests.waiting import until

__all__ = ["CRDS", "NAMESPACES", "Hub", "Json", "as_controller", "condition", "config_map", "put"]

K = TypeVar("K", bound=Resource)
T = TypeVar("T")
Json = dict[str, Any]

CRDS = Served("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
NAMESPACES = Served("", "v1", "Namespace", "namespaces", namespaced=False)
OURS = (Module, SyncGroup, Source, ProxyAssemblage, Cluster, RolloutPolicy)


def config_map(name: str, **data: str) -> str:
    """A ConfigMap's manifest."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return yaml.safe_dump(document)


def condition(obj: Resource, kind: str = "Ready") -> tuple[str, str, str]:
    """What a condition says: its status, reason and message."""
    found = [(c.status, c.reason, c.message) for c in obj.status.conditions if c.type == kind]
    return found[0] if found else ("", "", "")


async def put(client: Client, documents: Sequence[Json]) -> None:
    """Apply documents, as someone who may."""
    for document in documents:
        group, _, version = document["apiVersion"].rpartition("/")
        resource = await client.discovery.resource(GroupVersionKind(group, version, document["kind"]))
        metadata = document["metadata"]
        await client.apply(resource.ref(metadata["name"], metadata.get("namespace", "")), document, manager="people")


async def as_controller(client: Client, server: LocalCluster) -> AccessSource:
    """Access to the hub as the controller's own account, which may do what its role says."""
    token = await request_token(client, Key(PLATFORM_NAMESPACE, CONTROLLER))
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    return kubeconfig_data(config)


@dataclass
class Hub:
    """A namespace on a hub. Mutable: the data folder, which is there from one run to the next."""

    client: Client
    access: AccessSource
    namespace: str
    folder: Path
    url: str
    private_url: str
    log: list[str] = field(repr=False)
    home: str = "data"

    @cached_property
    def repository(self) -> Repository:
        """The repository, which has a folder `base` with one ConfigMap."""
        made = Repository(self.folder / "git" / "app.git")
        made.commit({"base/one.yaml": config_map("one", v="1")})
        return made

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The hub's controllers, with access of their own account; what ends them fails the test."""
        data = self.folder / self.home
        data.mkdir(exist_ok=True)
        settings = Settings(instance="fleet", data=data, elect=False)
        async with at_work(run_controller(self.access, settings)):
            yield

    def forget_files(self) -> None:
        """Have the next hub begin with an empty disk."""
        self.home += "-"

    async def clean(self) -> None:
        """Leave nothing for the hub of the next test to work on."""
        for kind in OURS:
            resource = kind.declaration.resource
            await self.client.raw("DELETE", resource.path(self.namespace))
            for each in (await self.client.list(resource, kind, Selection(self.namespace))).items:
                with suppress(NotFound):
                    ref = resource.ref(each.metadata.name, self.namespace)
                    await self.client.merge_patch(ref, {"metadata": {"finalizers": None}})
        await self.client.raw("DELETE", REVISIONS.path(self.namespace))

    # What people write

    async def put(self, kind: type[K], name: str, spec: Json, **metadata: Any) -> K:
        """Have an object of ours so."""
        ref = kind.declaration.resource.ref(name, self.namespace)
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": kind.__name__,
            "metadata": {"name": name, "namespace": self.namespace, **metadata},
            "spec": spec,
        }
        return (await self.client.apply(ref, body, manager="people")).decode(kind)

    async def patch(self, kind: type[K], name: str, patch: Json) -> K:
        """Change some of an object of ours."""
        ref = kind.declaration.resource.ref(name, self.namespace)
        return (await self.client.merge_patch(ref, patch, manager="people")).decode(kind)

    async def delete(self, kind: type[Resource], name: str) -> None:
        """Delete one."""
        await self.client.delete(kind.declaration.resource.ref(name, self.namespace))

    async def put_source(self, name: str = "app", *, private: bool = False, **more: Any) -> Source:
        """Have a Source of the repository's main branch, looked at every second; `more` is for its git part."""
        assert self.repository.bare.exists()
        git = {"url": f"{self.private_url if private else self.url}/app.git", "ref": {"branch": "main"}, **more}
        return await self.put(Source, name, {"git": git, "interval": "1s"})

    async def put_module(self, name: str = "base", sync: Json | None = None, **more: Any) -> Module:
        """Have a Module of the repository's folder `base`, for clusters with the label ring=canary."""
        template = {"source": {"name": "app"}, "path": "base", "package": {"plain": {}}, **(sync or {})}
        spec = {"selector": {"matchLabels": {"ring": "canary"}}, "sync": template, **more}
        return await self.put(Module, name, spec)

    async def put_secret(self, name: str, data: Mapping[str, str]) -> None:
        """Have a Secret hold that."""
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }
        await self.client.apply(SECRETS.ref(name, self.namespace), body, manager="people")

    # What they see

    async def get(self, kind: type[K], name: str) -> K | None:
        """An object of ours."""
        try:
            return (await self.client.get(kind.declaration.resource.ref(name, self.namespace))).decode(kind)
        except NotFound:
            return None

    async def sees(self, kind: type[K], name: str, so: Callable[[K], bool]) -> K:
        """An object of ours, once it is so; what it is instead is told."""
        found: K | None = None

        async def is_so() -> bool:
            nonlocal found
            found = await self.get(kind, name)
            return found is not None and so(found)

        try:
            await until(is_so)
        except TimeoutError:
            raise AssertionError(f"never so: {found}; log: {self.log[-10:]}") from None
        assert found is not None
        return found

    async def gone(self, kind: type[Resource], name: str) -> None:
        """Wait until there is no such object."""

        async def is_gone() -> bool:
            return await self.get(kind, name) is None

        await until(is_gone)

    async def sees_entries_of(self, cluster: str, names: Sequence[str]) -> ProxyAssemblage:
        """What a cluster is told, once it is told just these entries."""
        return await self.sees(ProxyAssemblage, cluster, lambda it: [each.name for each in it.spec.syncs] == names)

    async def fetched(self, commit: str, name: str = "app") -> Source:
        """The Source, once it is at a commit."""
        wanted = f"main@sha1:{commit}"
        return await self.sees(Source, name, lambda it: it.status.revision == wanted and condition(it)[0] == "True")

    async def says(self, kind: type[K], name: str, text: str, about: str = "Ready") -> K:
        """It, once a condition of its newest generation has a text in it."""
        return await self.sees(
            kind,
            name,
            lambda it: text in condition(it, about)[2] and it.status.observed_generation == it.metadata.generation,
        )

    async def revisions(self) -> dict[str, Json]:
        """The ControllerRevisions there are, by the target that each is for."""
        found = (await self.client.raw("GET", REVISIONS.path(self.namespace))).json()["items"]
        return {each["data"]["target"]: each for each in found}

    async def credentials(self, cluster: str = "c") -> dict[str, dict[str, str]] | None:
        """What a cluster may use: by name of the hub's Secret, what is in there."""
        try:
            found = (
                await self.client.get(SECRETS.ref(f"starling-cluster-{cluster}-credentials", self.namespace))
            ).json()
        except NotFound:
            return None
        packed = {name: base64.b64decode(value) for name, value in (found.get("data") or {}).items()}
        return {
            name: {key: base64.b64decode(each).decode() for key, each in msgspec.json.decode(value).items()}
            for name, value in packed.items()
        }

    async def has_credentials(self, wanted: Mapping[str, Mapping[str, str]], cluster: str = "c") -> None:
        """Wait until these are the ones that it may use."""

        async def same() -> bool:
            return await self.credentials(cluster) == wanted

        await until(same)


@asynccontextmanager
async def at_work(work: Awaitable[None]) -> AsyncIterator[None]:
    """Something runs while the block does; what it raises is raised."""
    task = asyncio.ensure_future(work)
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
