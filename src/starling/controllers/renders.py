"""What was rendered last for each Sync, kept compressed in Secrets beside it: enough to go on when git is gone.

A render is one gzip'd JSON document, cut into parts of at most 900 kB, `starling-render-<sync>-<n>`. The first part
says what it is (key, revision, how many parts) and the digest of the whole. It is written last, so a set that was
half-written when someone died doesn't match its digest, and counts as absent.
"""

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from starling.api import Sync
from starling.controllers.secrets import SECRETS
from starling.kube import Client, DeleteOptions, NotFound, Selection
from starling.objects import Manifest, Origin, digest, short_digest

__all__ = ["LABEL", "Render", "Renders", "packed_manifests", "part_name", "unpacked_manifests"]

LABEL: Final = "starling.dev/render"
ANNOTATION: Final = "starling.dev/render-"
PART: Final = 900_000
"""Bytes of a part once it is base64; a Secret may hold 1,048,576."""

LONGEST_NAME: Final = 200
LONGEST_LABEL: Final = 63
ENTRY: Final = "manifests.json.gz"


class Render(msgspec.Struct, frozen=True):
    """Manifests, packed; `key` names what they were made from, `revision` the version as people read it."""

    key: str
    revision: str
    packed: bytes

    def manifests(self) -> list[Manifest]:
        """The manifests, as they were rendered."""
        return unpacked_manifests(self.packed)


class _Metadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}


class _Part(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class Renders:
    """Renders by Sync. Mutable: it keeps, packed, what it has read or written."""

    def __init__(self, client: Client, *, part: int = PART) -> None:
        self._client = client
        self._part = part * 3 // 4  # base64 makes four bytes of three
        self._known: dict[str, Render] = {}

    async def get(self, sync: Sync) -> Render | None:
        """What was rendered last for a Sync; None if nothing was, or not all of it is there."""
        uid = sync.metadata.uid
        if uid not in self._known:
            if (found := await self._read(sync)) is None:
                return None
            self._known[uid] = found
        return self._known[uid]

    async def put(self, sync: Sync, render: Render) -> None:
        """Keep it in the place of the one before."""
        if self._known.get(sync.metadata.uid) == render:
            return
        parts = [render.packed[at : at + self._part] for at in range(0, len(render.packed), self._part)]
        self._known.pop(sync.metadata.uid, None)
        for number, part in reversed([*enumerate(parts)]):
            about = _about(render, len(parts)) if number == 0 else {}
            await self._write(sync, number, part, about)
        await self._tidy(sync, {part_name(sync.metadata.name, number) for number in range(len(parts))})
        self._known[sync.metadata.uid] = render

    def forget(self, uid: str) -> None:
        """Keep nothing in memory of a Sync that is gone; its Secrets go with it."""
        self._known.pop(uid, None)

    async def _read(self, sync: Sync) -> Render | None:
        first = await self._read_part(sync, 0)
        if first is None:
            return None
        about = {name.removeprefix(ANNOTATION): value for name, value in first.metadata.annotations.items()}
        count = about.get("parts", "")
        if not count.isdecimal():
            return None
        parts = [first, *[await self._read_part(sync, number) for number in range(1, int(count))]]
        whole = b"".join(base64.b64decode((part.data or {}).get(ENTRY, "")) for part in parts if part is not None)
        render = Render(about.get("key", ""), about.get("revision", ""), whole)
        return render if _digest(whole) == about.get("digest") else None

    async def _read_part(self, sync: Sync, number: int) -> _Part | None:
        ref = SECRETS.ref(part_name(sync.metadata.name, number), sync.metadata.namespace)
        try:
            return (await self._client.get(ref)).decode(_Part)
        except NotFound:
            return None

    async def _write(self, sync: Sync, number: int, part: bytes, about: Mapping[str, str]) -> None:
        meta = sync.metadata
        ref = SECRETS.ref(part_name(meta.name, number), meta.namespace)
        owner = {"apiVersion": sync.api_version, "kind": "Sync", "name": meta.name, "uid": meta.uid}
        metadata: dict[str, Any] = {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": {LABEL: _label(meta.name)},
            "annotations": about,
            "ownerReferences": [owner],
        }
        data = {ENTRY: base64.b64encode(part).decode()}
        await self._client.apply(ref, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    async def _tidy(self, sync: Sync, kept: set[str]) -> None:
        """Take away the parts that an earlier, larger render had."""
        namespace = sync.metadata.namespace
        selection = Selection(namespace, labels=f"{LABEL}={_label(sync.metadata.name)}")
        for each in (await self._client.list(SECRETS, _Part, selection)).items:
            if each.metadata.name not in kept:
                try:
                    await self._client.delete(SECRETS.ref(each.metadata.name, namespace), DeleteOptions())
                except NotFound:
                    continue


def packed_manifests(manifests: Sequence[Manifest]) -> bytes:
    """Manifests with their places, the same bytes for the same manifests."""
    document = [[each.content, [each.origin.file, each.origin.document, each.origin.line]] for each in manifests]
    return gzip.compress(msgspec.json.encode(document), mtime=0)


def unpacked_manifests(packed: bytes) -> list[Manifest]:
    """What `packed_manifests` made the bytes from; nothing else has the digest that is checked before."""
    document = msgspec.json.decode(gzip.decompress(packed), type=list[tuple[dict[str, Any], tuple[str, int, int]]])
    return [Manifest(content, Origin(*origin)) for content, origin in document]


def part_name(sync: str, number: int) -> str:
    """The name of a part's Secret."""
    return f"starling-render-{_short(sync, LONGEST_NAME)}-{number}"


def _label(sync: str) -> str:
    return _short(sync, LONGEST_LABEL)


def _short(name: str, longest: int) -> str:
    """The name, or its beginning and a digest of the whole."""
    return name if len(name) <= longest else f"{name[: longest - 17]}-{short_digest(digest(name))}"


def _about(render: Render, parts: int) -> dict[str, str]:
    about = {
        "key": render.key,
        "revision": render.revision,
        "parts": str(parts),
        "digest": _digest(render.packed),
    }
    return {f"{ANNOTATION}{name}": value for name, value in about.items()}


def _digest(whole: bytes) -> str:
    return f"sha256:{hashlib.sha256(whole).hexdigest()}"
