"""`starling tree`: a unit's objects, what controllers made for them, and how ready all of it is."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK
from starling.cli import console
from starling.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    Timeout,
    UnitName,
    seconds,
)
from starling.cli.reports import described, operation_document
from starling.cli.units import Reach, connected, refuse_unknown, unit_id
from starling.engine import ConfigMapStore, Health, Operation, Phase, Readiness, UnitStatus
from starling.engine.cache import Seen, SeenMetadata
from starling.engine.health import assess, least
from starling.engine.ownership import owner
from starling.errors import OutOfTime
from starling.kube import ApiError, Client, Resource, Selection
from starling.objects import ObjectKey

__all__ = ["tree"]

AT_ONCE: Final = 8
PASSED_OVER: Final = frozenset({("", "Event"), ("events.k8s.io", "Event")})
"""Kinds that are many and have no owners."""


def tree(
    *,
    name: UnitName,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the objects of a unit, those that they own in turn, and the readiness of each.

    Below the unit's own readiness, which is the least of its objects', stands what became of the last apply unless it
    succeeded. Kinds that may not be listed are left out, which is said. With -o json, one document: unit, readiness,
    operation (the last apply: phase, revision, startedAt, finishedAt, message), objects with their children.

    Exit codes: 0 whatever the readiness, 2 there is no such unit, kubeconfig or context, 3 something failed,
    4 out of time.

    starling tree --name web
    """
    limit = seconds(timeout)
    try:
        console.run(_tree(Reach(kubeconfig, context, namespace), name, limit, output))
    except TimeoutError:
        raise OutOfTime(f"the objects of {name} couldn't be listed in {timeout}") from None


class _Object(msgspec.Struct):
    """A Seen of which the rest stays as it came until it is looked at: of most objects only the metadata is."""

    metadata: SeenMetadata
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class _Found:
    resource: Resource
    object: _Object

    @property
    def key(self) -> ObjectKey:
        meta = self.object.metadata
        return ObjectKey(self.resource.group, self.resource.kind, meta.namespace, meta.name)

    def health(self, now: datetime) -> Health:
        raw = self.object
        seen = Seen(raw.metadata, msgspec.json.decode(raw.spec), msgspec.json.decode(raw.status))
        return assess(seen.for_health(self.resource), now)


class _Node(msgspec.Struct, frozen=True):
    """One object and what it owns."""

    key: ObjectKey
    health: Health
    children: "tuple[_Node, ...]" = ()


async def _tree(reach: Reach, name: str, limit: float, output: Output) -> None:
    async with asyncio.timeout(limit), connected(reach) as (client, namespace):
        unit, store = unit_id(namespace, name), ConfigMapStore(client, namespace)
        await refuse_unknown(store, unit)
        stored = await store.get(unit)
        status = stored.status if stored is not None else UnitStatus()
        owned = sorted(status.inventory)
        found, unlisted = await _list_all(client, owned)
    nodes = _grown(_still(owned, found, unit), found, SYSTEM_CLOCK.now())
    readiness = least(node.health.readiness for node in nodes)
    if output is Output.JSON:
        operation, objects = operation_document(status.operation), [_document(node) for node in nodes]
        console.document({"unit": unit, "readiness": readiness, "operation": operation, "objects": objects})
    else:
        console.data("\n".join((f"{name}  {readiness}", *_last_apply(status.operation), *_drawn(nodes))))
    if unlisted:
        console.note(f"not among these, since they may not or can't be listed: {', '.join(sorted(unlisted))}")


async def _list_all(client: Client, owned: Sequence[ObjectKey]) -> tuple[list[_Found], set[str]]:
    """Every object where the unit has some: in its namespaces, and in none if it has cluster-scoped ones."""
    served: dict[tuple[str, str], Resource] = {}
    for resource in await client.discovery.resources():
        served.setdefault((resource.group, resource.kind), resource)  # the preferred version comes first
    kinds = [each for kind, each in served.items() if "list" in each.verbs and kind not in PASSED_OVER]
    namespaces = sorted({key.namespace for key in owned})
    places = [(each, place) for each in kinds for place in namespaces if each.namespaced is bool(place)]
    found: list[_Found] = []
    unlisted: set[str] = set()
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(resource: Resource, namespace: str) -> None:
        async with slots:
            try:
                listing = await client.list(resource, _Object, Selection(namespace))
            except ApiError:
                unlisted.add(str(resource))
            else:
                found.extend(_Found(resource, each) for each in listing.items)

    await asyncio.gather(*(one(*place) for place in places))
    return found, unlisted


def _still(owned: Sequence[ObjectKey], found: Iterable[_Found], unit: str) -> list[ObjectKey]:
    """What the record names, without what has moved to other units since it was written."""
    metadata = {each.key: each.object.metadata for each in found}
    owners = {key: owner(key, metadata[key].labels, metadata[key].annotations) for key in owned if key in metadata}
    return [key for key in owned if owners.get(key, "") in ("", unit)]


def _grown(owned: Sequence[ObjectKey], found: Iterable[_Found], now: datetime) -> list[_Node]:
    """The unit's objects with their children; what a unit's own object owns and the unit has too is told once."""
    by_key = {each.key: each for each in found}
    children: dict[str, list[_Found]] = {}
    mine = set(owned)
    for each in by_key.values():
        for reference in each.object.metadata.owner_references or ():
            if each.key not in mine:
                children.setdefault(reference.uid, []).append(each)

    def node(each: _Found, above: frozenset[str]) -> _Node:
        uid = each.object.metadata.uid
        below = () if uid in above else sorted(children.get(uid, ()), key=lambda child: child.key)
        return _Node(each.key, each.health(now), tuple(node(child, above | {uid}) for child in below))

    missing = Health(Readiness.MISSING, "not there")
    return [node(by_key[key], frozenset()) if key in by_key else _Node(key, missing) for key in owned]


def _last_apply(operation: Operation | None) -> Iterator[str]:
    """What is to be said of the last apply: nothing if all is well."""
    if operation is not None and operation.phase is not Phase.SUCCEEDED:
        message = " ".join(console.in_words(operation.message).split())
        became = "failed" if operation.phase is Phase.FAILED else "isn't finished: under way, or stopped half-way"
        yield f"last apply {became}{': ' * bool(message)}{message}"


def _drawn(nodes: Sequence[_Node], indent: str = "") -> Iterator[str]:
    for node in nodes:
        last = node is nodes[-1]
        message = " ".join(node.health.message.split())
        said = f": {message}" if message and node.health.readiness is not Readiness.CURRENT else ""
        yield f"{indent}{'└── ' if last else '├── '}{node.key}  {node.health.readiness}{said}"
        yield from _drawn(node.children, indent + ("    " if last else "│   "))


def _document(node: _Node) -> Mapping[str, Any]:
    return {
        **described(node.key),
        "readiness": node.health.readiness,
        "message": node.health.message,
        "children": [_document(child) for child in node.children],
    }
