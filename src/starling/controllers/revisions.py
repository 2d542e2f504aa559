"""The history of what is rolled out: one ControllerRevision per target, written before any status names it."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from starling.api import ObjectMeta, Resource
from starling.api.meta import Fields
from starling.controllers.writing import owned_by
from starling.errors import InputError
from starling.kube import AlreadyExists, Client, NotFound
from starling.kube import Resource as Served
from starling.objects import digest, short_digest
from starling.runtime import Informer, Key

__all__ = ["GROUP_LABEL", "MODULE_LABEL", "REVISIONS", "Known", "Revision", "Revisions"]

REVISIONS: Final = Served("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)
MODULE_LABEL: Final = "starling.dev/module"
GROUP_LABEL: Final = "starling.dev/syncgroup"
KEPT: Final = 10


class Known(Protocol):
    """What a target stands for."""

    @property
    def target(self) -> str:
        """The target."""
        ...

    @property
    def revision(self) -> str:
        """The exact version that it was made from."""
        ...


R = TypeVar("R", bound=Known)


class Revision(Fields, frozen=True, kw_only=True):
    """A ControllerRevision with a label of ours. Anybody may have written it: what it holds is read with care."""

    metadata: ObjectMeta
    data: Any = None
    revision: int = 0


class Written(NamedTuple, Generic[R]):
    """One that is known."""

    name: str
    number: int
    data: R


class Revisions(Generic[R]):
    """Reads them from an informer, and writes new ones, with a label; `into` is what they hold."""

    def __init__(self, client: Client, informer: Informer[Revision], label: str, into: type[R]) -> None:
        self._client = client
        self._informer = informer
        self._label, self._into = label, into
        self._found: dict[Key, dict[str, Written[R]]] = {}
        informer.listen(self._changed)

    def of(self, owner: Resource) -> dict[str, Written[R]]:
        """An object's revisions by target; those of another one of its name, that was deleted, aren't its own."""
        return self._found.get(Key(owner.metadata.namespace, owner.metadata.uid), {})

    def get(self, owner: Resource, target: str) -> R | None:
        """What a target stands for, if that is still known."""
        found = self.of(owner).get(target)
        return found.data if found is not None else None

    async def ensure(self, owner: Resource, data: R) -> None:
        """Have a target written down; what it stands for never changes."""
        meta = owner.metadata
        known = self.of(owner)
        if data.target in known:
            return
        number = max((each.number for each in known.values()), default=0) + 1
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{meta.name}-{short_digest(digest([meta.uid, data.target]))}",
                "namespace": meta.namespace,
                "labels": {self._label: _label(meta.name)},
                "ownerReferences": [owned_by(owner)],
            },
            "revision": number,
            "data": msgspec.to_builtins(data),
        }
        try:
            answer = await self._client.create(REVISIONS, body, namespace=meta.namespace)
        except AlreadyExists:
            answer = await self._client.get(REVISIONS.ref(body["metadata"]["name"], meta.namespace))
        written = answer.decode(Revision)
        if (there := self._known(written)) is None or there.target != data.target:
            raise InputError(
                f"ControllerRevision {meta.namespace}/{written.metadata.name} isn't Starling's, and in its way",
                hint="delete it",
            )
        self._informer.learn(written)

    async def tidy(self, owner: Resource, in_use: Iterable[str]) -> None:
        """Take away the oldest beyond ten that nobody is at."""
        meta, needed = owner.metadata, set(in_use)
        known = sorted(self.of(owner).values(), key=lambda each: each.number, reverse=True)
        for each in known[KEPT:]:
            if each.data.target not in needed:
                with suppress(NotFound):
                    await self._client.delete(REVISIONS.ref(each.name, meta.namespace))

    def _changed(self, before: Revision | None, after: Revision | None) -> None:
        if before is not None and (was := self._known(before)) is not None:
            self._found.get(_place(before), {}).pop(was.target, None)
        if after is not None and (now := self._known(after)) is not None:
            found = self._found.setdefault(_place(after), {})
            found[now.target] = Written(after.metadata.name, after.revision, now)

    def _known(self, revision: Revision) -> R | None:
        """What a target stands for; None if this can't be read, which mustn't keep the others from being read."""
        try:
            return msgspec.convert(revision.data, self._into)
        except msgspec.ValidationError:
            return None


def _place(revision: Revision) -> Key:
    meta = revision.metadata
    return Key(meta.namespace, next((each.uid for each in meta.owner_references if each.controller), ""))


def _label(name: str) -> str:
    return name if len(name) <= 63 else short_digest(digest(name))
