"""Single objects as an engine knows them, without an engine: applied, looked at, compared by a dry run."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starling.engine.cache import ClusterCache, Record, Seen
from starling.engine.diff import ObjectDiff, diff_object
from starling.engine.health import assess
from starling.engine.ownership import LABEL
from starling.engine.prepare import Desired, prepare
from starling.engine.unit import Unit
from starling.kube import Client, Ref
from starling.objects import GroupVersionKind, canonical_json, load_manifests
from tests.integration.engine.fuzzing import Json
from tests.integration.engine.world import unit_id

__all__ = ["Subject", "subject"]

SERVERS = {1: ("managedFields", "resourceVersion", "generation"), 2: ("deprecated.daemonset.template.generation",)}
"""What the server counts in metadata, by how deep it stands."""


@dataclass(frozen=True)
class Subject:
    """An object as the engine wants it, and what it remembers of its last apply."""

    client: Client
    ref: Ref
    desired: Desired
    unit: Unit
    cache: ClusterCache

    @property
    def content(self) -> Json:
        """What is applied."""
        return self.desired.manifest.content

    async def live(self) -> Json:
        """The object as it is."""
        found: Json = (await self.client.get(self.ref)).json()
        return found

    async def apply(self) -> None:
        """Apply it, and remember how that left it."""
        body = await self.client.apply(self.ref, self.desired.manifest)
        self.cache.applied(self.ref.resource, body.decode(Seen), self.unit.id, self.desired.digest)

    async def look(self) -> Record:
        """What is known of it after a look."""
        record = self.cache.see(self.ref.resource, (await self.client.get(self.ref)).decode(Seen))
        assert record is not None
        return record

    async def diff(self) -> ObjectDiff:
        """What an apply would change."""
        return await diff_object(self.client, self.ref, self.content)

    async def only_order(self) -> bool:
        """Whether what an apply would change is no more than the order of lists' items."""
        after = (await self.client.apply(self.ref, self.content, dry_run=True)).json()
        return bool(unordered(await self.live()) == unordered(after))


def unordered(value: Any, depth: int = 0) -> Any:
    """A value that is the same whatever the order of lists' items; without what the server writes about an object."""
    match value:
        case dict():
            hidden = SERVERS.get(depth, ())
            return {name: unordered(part, depth + 1) for name, part in value.items() if name not in hidden}
        case list():
            return sorted((unordered(part, depth + 1) for part in value), key=canonical_json)
        case _:
            return value


async def subject(client: Client, content: Json, namespace: str) -> Subject:
    """A manifest's object, not yet applied."""
    kind = GroupVersionKind.from_api_version(content["apiVersion"], content["kind"])
    resource = await client.discovery.resource(kind)
    unit = Unit(id=unit_id(namespace), cluster="here", target_namespace=namespace)
    (desired,) = prepare(load_manifests(json.dumps(content), "fuzz.json"), unit, {kind: resource}).desired
    cache = ClusterCache(LABEL, assess, lambda: datetime.now(UTC))
    return Subject(client, resource.ref(desired.key.name, desired.key.namespace), desired, unit, cache)
