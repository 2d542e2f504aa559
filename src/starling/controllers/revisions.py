"""A Module's history: one ControllerRevision per target, written before any status names it, never changed."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from starling.api import Module, ObjectMeta
from starling.api.meta import Fields
from starling.controllers.writing import owned_by
from starling.errors import InputError
from starling.fleet import ModuleRevision
from starling.kube import AlreadyExists, Client, NotFound, Resource
from starling.objects import digest, short_digest
from starling.runtime import Informer

__all__ = ["MODULE_LABEL", "REVISIONS", "Revision", "Revisions"]

REVISIONS: Final = Resource("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)
MODULE_LABEL: Final = "starling.dev/module"
KEPT: Final = 10


class Revision(Fields, frozen=True, kw_only=True):
    """A ControllerRevision with a Module's label. Anybody may have written it: `known` tells whether it is of ours."""

    metadata: ObjectMeta
    data: Any = None
    revision: int = 0

    def known(self) -> ModuleRevision | None:
        """What a target stands for; None if this can't be read, which mustn't keep the others from being read."""
        try:
            return msgspec.convert(self.data, ModuleRevision)
        except msgspec.ValidationError:
            return None


class Written(NamedTuple):
    """One that is known."""

    name: str
    number: int
    data: ModuleRevision


class Revisions:
    """Reads them from an informer, and writes new ones."""

    def __init__(self, client: Client, informer: Informer[Revision]) -> None:
        self._client = client
        self._informer = informer
        self._found: dict[str, dict[str, Written]] = {}
        informer.listen(self._changed)

    def of(self, module: Module) -> dict[str, Written]:
        """A Module's revisions by target; those of another one of its name, that was deleted, aren't its own."""
        return self._found.get(module.metadata.uid, {})

    def get(self, module: Module, target: str) -> ModuleRevision | None:
        """What a target stands for, if that is still known."""
        found = self.of(module).get(target)
        return found.data if found is not None else None

    async def ensure(self, module: Module, data: ModuleRevision) -> None:
        """Have a target written down; what it stands for never changes."""
        meta = module.metadata
        known = self.of(module)
        if data.target in known:
            return
        number = max((each.number for each in known.values()), default=0) + 1
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{meta.name}-{short_digest(digest([meta.uid, data.target]))}",
                "namespace": meta.namespace,
                "labels": {MODULE_LABEL: _label(meta.name)},
                "ownerReferences": [owned_by(module)],
            },
            "revision": number,
            "data": msgspec.to_builtins(data),
        }
        try:
            answer = await self._client.create(REVISIONS, body, namespace=meta.namespace)
        except AlreadyExists:
            answer = await self._client.get(REVISIONS.ref(body["metadata"]["name"], meta.namespace))
        written = answer.decode(Revision)
        if (there := written.known()) is None or there.target != data.target:
            raise InputError(
                f"ControllerRevision {meta.namespace}/{written.metadata.name} isn't Starling's, and in its way",
                hint="delete it",
            )
        self._informer.learn(written)

    async def tidy(self, module: Module, in_use: Iterable[str]) -> None:
        """Take away the oldest beyond ten that nobody is at."""
        meta, needed = module.metadata, set(in_use)
        known = sorted(self.of(module).values(), key=lambda each: each.number, reverse=True)
        for each in known[KEPT:]:
            if each.data.target not in needed:
                with suppress(NotFound):
                    await self._client.delete(REVISIONS.ref(each.name, meta.namespace))

    def _changed(self, before: Revision | None, after: Revision | None) -> None:
        if before is not None and (was := before.known()) is not None:
            self._found.get(_place(before), {}).pop(was.target, None)
        if after is not None and (now := after.known()) is not None:
            found = self._found.setdefault(_place(after), {})
            found[now.target] = Written(after.metadata.name, after.revision, now)


def _place(revision: Revision) -> str:
    return next((each.uid for each in revision.metadata.owner_references if each.kind == "Module"), "")


def _label(name: str) -> str:
    return name if len(name) <= 63 else short_digest(digest(name))
