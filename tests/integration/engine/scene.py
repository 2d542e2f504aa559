"""A World of one test's own: its namespace, everything that was written down, and a look at what is in the cluster."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from starling.engine import Phase, UnitStatus
from starling.kube import Client, Metadata, NotFound, Resource, Selection
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.world import World, unit_id
from tests.waiting import until

__all__ = ["HOUR", "Json", "Named", "Scene", "config_map", "deployment", "key_of"]

Json = dict[str, Any]
HOUR = 3600.0
RESOURCES = {"ConfigMap": CONFIG_MAPS, "Deployment": DEPLOYMENTS}


class Named(msgspec.Struct):
    """An object of which the metadata matters."""

    metadata: Metadata


@dataclass
class Scene(World):
    """Units are of the hub namespace that is called like the test's, so that no test sees another's objects.

    Of `unlisted` units and `unannounced` ones whoever lists, or watches, isn't told.
    """

    namespace: str = ""
    client: Client = field(kw_only=True)
    history: list[UnitStatus] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)
    unannounced: set[str] = field(default_factory=set)
    on_status: Callable[[UnitStatus], object] = field(default=lambda _status: None)

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        await super().set_status(unit_id, status)
        self.history.append(status)
        self.on_status(status)

    async def list(self) -> Sequence[str]:
        return [identity for identity in await super().list() if identity not in self.unlisted]

    async def watch(self) -> AsyncIterator[str]:
        async for identity in super().watch():
            if identity not in self.unannounced:
                yield identity

    def render(self, name: str, *contents: Json, **options: Any) -> str:
        """Add a unit, or give it other manifests; its id."""
        identity = name if "/" in name else unit_id(name, namespace=self.namespace)
        text = "\n---\n".join(json.dumps(content) for content in contents) or "# nothing\n"
        return self.put(identity, text, **{"target_namespace": self.namespace, **options})

    def forget(self, identity: str) -> None:
        """Have no such unit any more, as if someone had deleted it without its finalizer's work."""
        del self.units[identity]
        self._changed.put_nowait(identity)

    def applied(self, identity: str) -> bool:
        """Whether the newest manifests are in the cluster; ready or not, for no controller runs here."""
        status = self.status(identity)
        done = status.operation is not None and status.operation.phase is Phase.SUCCEEDED
        return done and status.applied_revision == self.texts[identity][0] and bool(status.baseline)

    async def has_applied(self, *identities: str) -> None:
        """Wait for that."""
        for identity in identities:
            try:
                await until(partial(self.applied, identity))
            except TimeoutError:
                raise AssertionError(f"{identity} isn't applied: {self.status(identity)}") from None

    async def live(self, name: str, kind: str | Resource = "ConfigMap") -> Json:
        """An object as it is in the cluster; nothing if it isn't there."""
        resource = RESOURCES[kind] if isinstance(kind, str) else kind
        try:
            body = await self.client.get(resource.ref(name, self.namespace if resource.namespaced else ""))
        except NotFound:
            return {}
        found: Json = body.json()
        return found

    async def data(self, name: str) -> Mapping[str, str] | None:
        """What is in a ConfigMap; None if there is none."""
        live = await self.live(name)
        return (live.get("data") or {}) if live else None

    async def names(self, resource: Resource = CONFIG_MAPS) -> set[str]:
        """All objects of a kind in the namespace."""
        found = await self.client.list(resource, Named, Selection(self.namespace))
        return {each.metadata.name for each in found.items}

    async def everything_seen(self, name: str, by: str = "someone") -> None:
        """Wait until the engine has seen all that happened to ConfigMaps so far: it puts right what comes last.

        Of one unit, what happened before is put right along with it, if at all.
        """
        wanted = await self.data(name)
        await self.client.merge_patch(CONFIG_MAPS.ref(name, self.namespace), {"data": {"x": f"{by}'s"}}, manager=by)

        async def is_right() -> bool:
            return await self.data(name) == wanted

        await until(is_right)


def config_map(name: str, /, **data: str) -> Json:
    """A ConfigMap's manifest."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", **spec: Any) -> Json:
    """A Deployment of one container."""
    container = {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]}
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    wanted = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod, **spec}
    metadata = {"name": name, "labels": {"app": name, "tier": "front"}, "annotations": {"note": "git's"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": wanted}


def key_of(content: Json, namespace: str) -> ObjectKey:
    """The key of a manifest's object."""
    group, _, _ = content["apiVersion"].rpartition("/")
    return ObjectKey(group, content["kind"], namespace, content["metadata"]["name"])
