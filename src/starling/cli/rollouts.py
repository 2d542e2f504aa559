"""Rollouts as commands read them: which one is meant, its policy and history, its states, and whether it has ended."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec

from starling.api import Declaration, Module, ObjectMeta, RolloutPolicy, SyncGroup
from starling.api.v1alpha1 import Rollout
from starling.cli import console
from starling.cli.fleet import DEFAULT_NAMESPACE, MANAGER, Key, named_object
from starling.cli.standings import Rolled
from starling.errors import InputError, StarlingError
from starling.kube import Changed, Client, Deleted, Interrupted, NotFound, Ref, Resource, Selection, Synced, watch

__all__ = [
    "KINDS",
    "Past",
    "Verdict",
    "Which",
    "found",
    "history_of",
    "is_at",
    "is_revision",
    "line_of",
    "meant",
    "message_of",
    "owners_of",
    "policy_of",
    "states",
    "verdict",
]

Verdict = Literal["waits", "done", "failed"]

REVISIONS: Final = Resource("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)
LONGEST_LABEL: Final = 63
SHORTEST_PREFIX: Final = 4
"""Letters of a commit or a target that may stand for it, as git has it."""


KINDS: Final[Mapping[str, type[Rolled]]] = {"module": Module, "syncgroup": SyncGroup}
"""What is rolled out, by the word before the name; where there is none, the first is meant."""


class Which(NamedTuple):
    """Which rollout."""

    kind: type[Rolled]
    key: Key

    def __str__(self) -> str:
        """As messages have it: module n/web."""
        return f"{self.kind.declaration.singular} {self.key.namespace}/{self.key.name}"

    @property
    def argument(self) -> str:
        """As commands take it, for the way out."""
        word = self.kind.declaration.singular
        name = self.key.name if word == next(iter(KINDS)) else f"{word}/{self.key.name}"
        return name if self.key.namespace == DEFAULT_NAMESPACE else f"{name} -n {self.key.namespace}"


class Past(NamedTuple):
    """A target that once was one, and what it was made from."""

    number: int
    target: str
    revision: str
    created: datetime | None


class _Data(msgspec.Struct):
    target: str
    revision: str


class _Revision(msgspec.Struct):
    """A ControllerRevision; anybody may have written it."""

    metadata: ObjectMeta
    data: msgspec.Raw = msgspec.Raw(b"null")
    revision: int = 0

    def past(self) -> Past | None:
        """What it says; None if it isn't one of ours."""
        try:
            data = msgspec.json.decode(self.data, type=_Data)
        except msgspec.DecodeError:
            return None
        return Past(self.revision, data.target, data.revision, self.metadata.creation_timestamp)


def meant(name: str, namespace: str) -> Which:
    """The rollout that `web`, `module/web` or the like names."""
    word, _, rest = name.rpartition("/")
    kind = KINDS.get((word or next(iter(KINDS))).lower().removesuffix("s"))
    if kind is None or not rest:
        ways = ", ".join(f"{known}/NAME" for known in KINDS)
        raise InputError(f"{name!r} names nothing that is rolled out", hint=f"write NAME, or {ways}")
    return Which(kind, Key(namespace, rest))


async def found(client: Client, which: Which) -> Rolled:
    """The object; InputError if there is none."""
    try:
        return await named_object(client, which.kind, which.key)
    except InputError as error:
        for word, kind in KINDS.items():
            with suppress(NotFound):
                await client.get(kind.declaration.resource.ref(which.key.name, which.key.namespace))
                hint = f"there is a {word} of that name: {word}/{which.key.name}"
                raise InputError(error.message, hint=hint) from None
        raise


class _Owner(msgspec.Struct, rename={"fields": "fieldsV1"}):
    manager: str = ""
    subresource: str = ""
    fields: dict[str, Any] = {}


class _OwnersMeta(msgspec.Struct, rename="camel"):
    managed_fields: tuple[_Owner, ...] = ()


class _Owned(msgspec.Struct):
    metadata: _OwnersMeta


async def owners_of(client: Client, ref: Ref, field: str) -> list[str]:
    """Who else says what a field of an object's spec is to be."""
    found = (await client.get(ref)).decode(_Owned).metadata.managed_fields
    owners = [each.manager for each in found if f"f:{field}" in each.fields.get("f:spec", {})]
    return sorted({each for each in owners if each != MANAGER})


async def policy_of(client: Client, rolled: Rolled) -> Rollout:
    """How it is to be rolled out; with a word if it names a policy that isn't there."""
    spec = rolled.spec
    if spec.policy_ref is None:
        return spec.rollout or Rollout()
    ref = RolloutPolicy.declaration.resource.ref(spec.policy_ref.name, rolled.metadata.namespace)
    try:
        return (await client.get(ref)).decode(RolloutPolicy).spec
    except NotFound:
        console.note(f"{ref} isn't there; without it no stages are known")
        return Rollout()


async def history_of(client: Client, rolled: Rolled) -> list[Past]:
    """The targets that it had, the newest first; those of another one of its name, that was deleted, aren't its own."""
    meta, declared = rolled.metadata, type(rolled).declaration
    label = f"{Declaration.group}/{declared.singular}"
    chosen = f"{label}={meta.name}" if len(meta.name) <= LONGEST_LABEL else label  # a longer name is in it as a digest
    listing = await client.list(REVISIONS, _Revision, Selection(meta.namespace, chosen))
    own = (each for each in listing.items if any(owner.uid == meta.uid for owner in each.metadata.owner_references))
    known = (each.past() for each in own)
    return sorted((each for each in known if each is not None), key=lambda each: each.number, reverse=True)


async def states(client: Client, which: Which) -> AsyncGenerator[Rolled | Interrupted, None]:
    """Each state it comes to, from the one that it is in; Interrupted while the API server is away.

    StarlingError once it is deleted.
    """
    kind, key = which.kind, which.key
    selection = Selection(key.namespace, fields=f"metadata.name={key.name}")
    there = False
    async with aclosing(watch(client, kind.declaration.resource, kind, selection)) as events:
        async for event in events:
            match event:
                case Changed():
                    there = True
                    yield event.object
                case Interrupted():
                    yield event
                case Deleted():
                    raise StarlingError(f"{which} was deleted")
                case Synced() if not there:
                    raise StarlingError(f"{which} was deleted")


def verdict(rolled: Rolled) -> Verdict:
    """Whether the rollout of its target has ended, and how; what was said before its last change says nothing."""
    status = rolled.status
    if status.observed_generation != rolled.metadata.generation or not status.target:
        return "waits"
    if status.failed_target == status.target:
        return "failed" if status.phase in ("Failed", "RolledBack") else "waits"
    return "done" if status.ended == status.target and status.phase in ("Succeeded", "Degraded") else "waits"


def is_revision(revision: str, wanted: str) -> bool:
    """Whether a revision such as v1.2.3@sha1:… is the one that a tag, or a commit or its beginning, names."""
    name, _, exact = revision.rpartition("@")
    commit = exact.partition(":")[2] or exact
    begins = len(wanted) >= SHORTEST_PREFIX and commit.startswith(wanted.lower())
    return bool(wanted) and (wanted in (revision, name, exact, commit) or begins)


def is_at(rolled: Rolled, wanted: str) -> bool:
    """Whether its target is made from a revision, or is the same as what that one would make."""
    told = f"{rolled.status.revision}, {rolled.status.source_revision}".split(", ")  # a group may have several
    return any(is_revision(each, wanted) for each in told)


def message_of(rolled: Rolled) -> str:
    """The one line that says where it stands and why it waits."""
    said = next((each.message for each in rolled.status.conditions if each.type == "Ready"), "")
    return " ".join(said.split()) or "nobody has looked at it yet; is `starling controller` running?"


def line_of(rolled: Rolled) -> str:
    """Where it stands, in a line that says whether it is about what was before the last change."""
    status = rolled.status
    stage = f", stage {status.stage}" if status.stage else ""
    stale = status.conditions and status.observed_generation != rolled.metadata.generation
    before = " (said before it was changed last)" if stale else ""
    return f"{status.phase}{stage}: {message_of(rolled)}{before}"
