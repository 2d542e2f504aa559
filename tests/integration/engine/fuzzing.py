"""Random manifests of many kinds, and random things that others do to the objects made of them."""

import copy
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from starling.engine.ownership import LABEL, TRACKING
from starling.kube import ApiError, Client, Ref

Json = dict[str, Any]
Way = tuple[str | int, ...]

GADGET_CRD: Json = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.fuzz.example.org}
spec:
  group: fuzz.example.org
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer, default: 3}
                parts:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: {type: string}
                      count: {type: integer, default: 1}
                      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                plain: {type: array, items: {type: integer}}
                whole: {type: object, x-kubernetes-map-type: atomic, x-kubernetes-preserve-unknown-fields: true}
                nested: {type: object, properties: {deep: {type: object, additionalProperties: {type: string}}}}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
""")
BASES: list[Json] = list(yaml.safe_load_all((Path(__file__).parent / "many_kinds.yaml").read_text()))
KINDS = {f"{base['kind']}{'-aggregated' if 'aggregationRule' in base else ''}": base for base in BASES}
SCALED = ("Deployment", "StatefulSet")
BUILT_IN = frozenset(KINDS) - {"Gadget", "CustomResourceDefinition"}

# Values that are as good as those they stand for; for other texts one letter more.
_OTHERS = {
    "TCP": "UDP", "ClusterIP": "NodePort", "Forbid": "Allow", "Ignore": "Fail", "Prefix": "Exact", "1": "1000m",
    "get": "watch", "1Gi": "1024Mi", "1024Mi": "1Gi", "Exists": "Equal", "None": "ClientIP", "25%": "30%",
    "RollingUpdate": "Recreate", "50%": "40%", "CREATE": "DELETE", "AAAA": "AQID", "aHVudGVyMg==": "aHVudGVyMw==",
}  # fmt: skip
_SERVERS = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")
_IDENTITY = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}


# Manifests


def manifest(kind: str, name: str, rng: random.Random) -> Json:
    """A random manifest of a kind; as a rule a valid one, and at times not: then the server says so."""
    content: Json = yaml.safe_load(yaml.safe_dump(KINDS[kind]).replace("NAME", name))
    metadata = content["metadata"]
    if rng.random() < 0.6:
        metadata["labels"] = {"tier": rng.choice("ab"), "app.kubernetes.io/name": name}
    if rng.random() < 0.5:
        metadata["annotations"] = {"note": rng.choice(["", "x", "y\nz\n"]), "example.org/other": "1"}
    if rng.random() < 0.1:
        metadata["finalizers"] = ["example.org/ours"]
    for _ in range(rng.choice([0, 0, 1, 2, 4])):
        ways = [way for way in ways_of(content) if way[0] != "metadata" and len(way) > 1]
        if ways:
            (changed if rng.random() < 0.3 else removed)(content, rng.choice(ways), rng)
    return content


def ways_of(value: Any, way: Way = ()) -> Iterator[Way]:
    """The ways to all values within an object, but for those that say which object it is."""
    parts: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        here = (*way, step)
        if way == ("metadata",) and step in _SERVERS:
            continue
        if here not in _IDENTITY:
            yield here
        yield from ways_of(part, here)


def at(value: Any, way: Way) -> Any:
    """What stands at the end of a way."""
    for step in way:
        value = value[step]
    return value


# Edits: each changes an object's content at the end of a way


def changed(content: Json, way: Way, rng: random.Random) -> None:
    """Another value of the same sort."""
    found = at(content, way)
    at(content, way[:-1])[way[-1]] = _other(found, rng)


def removed(content: Json, way: Way, _rng: random.Random) -> None:
    """Nothing there any more."""
    del at(content, way[:-1])[way[-1]]


def emptied(content: Json, way: Way, _rng: random.Random) -> None:
    """Nothing in it any more."""
    found = at(content, way)
    at(content, way[:-1])[way[-1]] = type(found)() if found is not None else None


def added(content: Json, way: Way, rng: random.Random) -> None:
    """One more beside it, much like it."""
    holder = at(content, way[:-1])
    other = _other(copy.deepcopy(holder[way[-1]]), rng)
    if isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), other)
    else:
        holder[f"{way[-1]}x"] = other


def reordered(content: Json, way: Way, rng: random.Random) -> None:
    """The list that it is, or is in, in another order."""
    for end in range(len(way), 0, -1):
        found = at(content, way[:end])
        if isinstance(found, list) and len(found) > 1:
            moved = found.pop(rng.randrange(len(found)))
            found.insert(rng.randrange(len(found)), moved)
            return


def _other(value: Any, rng: random.Random) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + rng.choice([1, 2, -1])
        case str():
            return _OTHERS.get(value, f"{value}x")
        case dict() if value:
            name = "name" if "name" in value else rng.choice(list(value))
            return {**value, name: _other(value[name], rng)}
        case list() if value:
            return [*value[:-1], _other(value[-1], rng)]
        case _:
            return value


EDITS = (changed, changed, removed, emptied, added, reordered)


# What others do


@dataclass(frozen=True)
class Deed:
    """Something that was done to an object, for the messages of failing tests."""

    how: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.how} {self.what}".strip()


Do = Callable[[Client, Ref, Json, Json, str], Awaitable[object]]


async def update(client: Client, ref: Ref, _before: Json, after: Json, manager: str) -> None:
    """The whole object, put."""
    await client.raw("PUT", ref.path, query={"fieldManager": manager}, body=after)


async def merge_patch(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """What has changed, as an RFC 7386 patch."""
    await client.merge_patch(ref, merge_of(before, after), manager=manager)


async def strategic_patch(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """The same as kubectl edit sends it; custom resources don't know it."""
    kind = "application/strategic-merge-patch+json"
    patch = merge_of(before, after)
    await client.raw("PATCH", ref.path, query={"fieldManager": manager}, body=patch, content_type=kind)


async def json_patch(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """What has changed, operation by operation."""
    await client.json_patch(ref, list(operations(before, after)), manager=manager)


async def apply_all(client: Client, ref: Ref, _before: Json, after: Json, manager: str) -> None:
    """Everything applied by another, who then owns it with us."""
    await client.apply(ref, _applicable(after), manager=manager)


async def apply_part(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """Just what has changed applied by another."""
    await client.apply(ref, _part(before, after), manager=manager)


async def apply_and_drop(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """What has changed applied by another, and given up again: the server removes what nobody else has."""
    await client.apply(ref, _part(before, after), manager=manager)
    await client.apply(ref, _part(before, before), manager=manager)


async def there_and_back(client: Client, ref: Ref, before: Json, after: Json, manager: str) -> None:
    """Changed, and changed back by another hand."""
    await client.raw("PUT", ref.path, query={"fieldManager": manager}, body=after)
    current = (await client.get(ref)).json()
    back = {**before, "metadata": {**before["metadata"]}}
    back["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    await client.raw("PUT", ref.path, query={"fieldManager": f"{manager}-back"}, body=back)


async def update_as_us(client: Client, ref: Ref, _before: Json, after: Json, _manager: str) -> None:
    """The whole object, put by one who calls himself starling."""
    await client.raw("PUT", ref.path, query={"fieldManager": "starling"}, body=after)


async def apply_as_us(client: Client, ref: Ref, _before: Json, after: Json, _manager: str) -> None:
    """Applied by one who calls himself starling."""
    await client.apply(ref, _applicable(after))


SENDERS: tuple[Do, ...] = (
    update, update, merge_patch, strategic_patch, json_patch, apply_all, apply_part, apply_and_drop, there_and_back,
    update_as_us,
)  # fmt: skip


async def edit(client: Client, ref: Ref, wanted: Json, rng: random.Random, manager: str, *, as_us: bool) -> Deed | None:
    """One random edit by another, sent in a random manner; None if the server wouldn't have it."""
    before = (await client.get(ref)).json()
    after = copy.deepcopy(before)
    ways = list(ways_of(wanted if rng.random() < 0.8 else before))
    change, send = rng.choice(EDITS), apply_as_us if as_us else rng.choice(SENDERS)
    try:
        way = rng.choice(ways)
        change(after, way, rng)
    except (KeyError, IndexError, TypeError):  # an earlier edit took it away
        return None
    try:
        await send(client, ref, before, after, manager)
    except ApiError:
        return None
    return Deed(send.__name__, f"{change.__name__} {'.'.join(map(str, way))}")


async def scale(client: Client, ref: Ref, manager: str) -> None:
    """As kubectl scale and autoscalers do it."""
    body = {"spec": {"replicas": 7}}
    scaled = Ref(ref.resource, ref.name, ref.namespace, "scale")
    await client.merge_patch(scaled, body, manager=manager)


async def write_status(client: Client, ref: Ref, manager: str) -> None:
    """As a controller does it."""
    await client.merge_patch(ref.status, {"status": {"observedGeneration": 1, "phase": "seen"}}, manager=manager)


async def strip_label(client: Client, ref: Ref, manager: str) -> None:
    """Our label taken off."""
    await client.merge_patch(ref, {"metadata": {"labels": {LABEL: None}}}, manager=manager)


async def strip_tracking(client: Client, ref: Ref, manager: str) -> None:
    """Our annotation taken off."""
    await client.merge_patch(ref, {"metadata": {"annotations": {TRACKING: None}}}, manager=manager)


async def overwrite_label(client: Client, ref: Ref, manager: str) -> None:
    """As kubectl label --overwrite does it."""
    await client.merge_patch(ref, {"metadata": {"labels": {"tier": "z"}}}, manager=manager)


async def clear_managed_fields(client: Client, ref: Ref, manager: str) -> None:
    """Nobody owns anything any more."""
    await client.merge_patch(ref, {"metadata": {"managedFields": [{}]}}, manager=manager)


async def drop_our_entry(client: Client, ref: Ref, manager: str) -> None:
    """We alone don't own anything any more."""
    entries = (await client.get(ref)).json()["metadata"].get("managedFields", [])
    ours = [place for place, entry in enumerate(entries) if entry["manager"] == "starling"]
    operations = [{"op": "remove", "path": f"/metadata/managedFields/{place}"} for place in reversed(ours)]
    await client.json_patch(ref, operations, manager=manager)


async def add_finalizer(client: Client, ref: Ref, manager: str) -> None:
    """One more to wait for."""
    await client.merge_patch(ref, {"metadata": {"finalizers": ["example.org/theirs"]}}, manager=manager)


SPECIAL = (
    scale, write_status, strip_label, strip_tracking, overwrite_label, clear_managed_fields, drop_our_entry,
    add_finalizer,
)  # fmt: skip


async def meddle(
    client: Client, ref: Ref, wanted: Json, rng: random.Random, manager: str, *, as_us: bool = False
) -> Deed:
    """Something random done to the object by another; what the server refuses is left and something else is done."""
    while True:
        deed: Deed | None
        if not as_us and rng.random() < 0.3:
            special = rng.choice(SPECIAL)
            try:
                await special(client, ref, manager)
            except ApiError:
                continue
            deed = Deed(special.__name__)
        else:
            deed = await edit(client, ref, wanted, rng, manager, as_us=as_us)
        if deed is not None:
            return deed


# Patches


def merge_of(before: Any, after: Any) -> Any:
    """The RFC 7386 patch from one value to another."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = {name: None for name in before if name not in after}
    return gone | {
        name: merge_of(before.get(name), value)
        for name, value in after.items()
        if name not in before or before[name] != value
    }


def operations(before: Any, after: Any, path: str = "") -> Iterator[Json]:
    """The RFC 6902 operations from one value to another."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in after:
                yield {"op": "remove", "path": below}
            elif name not in before:
                yield {"op": "add", "path": below, "value": after[name]}
            else:
                yield from operations(before[name], after[name], below)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from operations(old, new, f"{path}/{place}")
    elif before != after:
        yield {"op": "replace", "path": path, "value": after}


def _applicable(content: Mapping[str, Any]) -> Json:
    metadata = {name: value for name, value in content["metadata"].items() if name not in _SERVERS}
    return {**{name: value for name, value in content.items() if name != "status"}, "metadata": metadata}


def _part(before: Json, after: Json) -> Json:
    """A manifest of what differs, lists as a whole."""
    differing = _without_nulls(merge_of(before, after))
    metadata = {name: value for name, value in differing.get("metadata", {}).items() if name not in _SERVERS}
    identity = {"apiVersion": after["apiVersion"], "kind": after["kind"]}
    return {**differing, **identity, "metadata": {**metadata, "name": after["metadata"]["name"]}}


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(part) for name, part in value.items() if part is not None}
