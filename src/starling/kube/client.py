"""The verbs of the Kubernetes API, thin and typed. Bodies stay bytes until someone needs a value."""

import copy
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.kube.config import AccessSource
from starling.kube.discovery import Discovery
from starling.kube.errors import Gone, NotServed, Unreadable
from starling.kube.resources import Body, Identity, Listing, Ref, Resource, Selection, Unread, decode, decode_object
from starling.kube.transport import Headers, Patience, Request, Transport
from starling.objects import Manifest

__all__ = ["EVERYTHING", "FIELD_MANAGER", "PAGE_SIZE", "Client", "DeleteOptions"]

T = TypeVar("T")

FIELD_MANAGER = "starling"
PAGE_SIZE = 500
EVERYTHING = Selection()
_PATIENCE = Patience()
_JSON = "application/json"
# DEL, the C1 controls with NEL among them, the line and paragraph separators, the byte order mark and its opposite.
_NOT_PLAIN = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to delete: what becomes of dependents, and which state of which object is meant."""

    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False

    def document(self) -> dict[str, Any]:
        """As the API has it."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": self.propagation,
            "preconditions": {name: value for name, value in preconditions.items() if value},
        }
        if self.grace_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_seconds
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options


class Client:
    """One API server, as one identity. An asynchronous context manager that closes its connections."""

    def __init__(self, source: AccessSource, *, patience: Patience = _PATIENCE, clock: Clock = SYSTEM_CLOCK) -> None:
        self.transport = Transport(source, patience, clock)
        self.discovery = Discovery(self.transport)
        self._identity: Headers = ()
        self._attempts: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection, those of derived clients and of watches included."""
        await self.transport.close()

    def impersonating(self, identity: Identity) -> Self:
        """A client on the same connections that acts as someone else. Discovery stays our own."""
        derived = copy.copy(self)
        groups = (("Impersonate-Group", group) for group in identity.groups)
        derived._identity = (("Impersonate-User", identity.user), *groups)  # noqa: SLF001 - one of us
        return derived

    def once(self) -> Self:
        """A client on the same connections that tries each request once; for those who have a way of trying again."""
        derived = copy.copy(self)
        derived._attempts = 1  # noqa: SLF001 - one of us
        return derived

    async def get(self, ref: Ref) -> Body:
        """One object, or a subresource of it."""
        return await self._send(self._request("GET", ref.path, f"get {ref}", idempotent=True))

    async def list(
        self, resource: Resource, into: type[T], selection: Selection = EVERYTHING, *, page_size: int = PAGE_SIZE
    ) -> Listing[T]:
        """All objects selected, fetched in pages, each decoded to the fields that `into` names, or Unreadable."""
        try:
            return await self._list(resource, into, selection, page_size)
        except Gone:  # the continue token outlived the server's memory: only a fresh start is consistent
            return await self._list(resource, into, selection, page_size)

    async def _list(self, resource: Resource, into: type[T], selection: Selection, page_size: int) -> Listing[T]:
        items: list[T] = []
        version = ""
        async for page in self.pages(resource, into, selection, page_size=page_size):
            for one in page.unread:
                action = f"list {_within(resource, selection.namespace)}"
                raise Unreadable(action, f"{one} isn't what was asked for: {one.cause}")
            items.extend(page.items)
            version = page.resource_version
        return Listing(items, version)

    async def pages(
        self, resource: Resource, into: type[T], selection: Selection = EVERYTHING, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[Listing[T]]:
        """The same page by page, what can't be decoded apart; raises Gone where the server forgot what was begun."""
        decoder = msgspec.json.Decoder(_ListOf[into])  # type: ignore[valid-type] # a type at run time
        query = {"limit": str(page_size), **selection.query()}
        path, action = resource.path(selection.namespace), f"list {_within(resource, selection.namespace)}"
        while True:
            body = await self._send(self._request("GET", path, action, query=query, idempotent=True))
            page = _page(decoder, into, body)
            yield page
            if not page.more:
                return
            query["continue"] = page.more

    async def create(
        self, resource: Resource, body: Any, *, namespace: str = "", manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Body:
        """Create an object; with `metadata.generateName` the server chooses its name. Never repeated blindly."""
        resource.check_namespace(namespace)
        action = f"create {_within(resource, namespace)}"
        body = body.content if isinstance(body, Manifest) else body
        if isinstance(body, Mapping):
            metadata = body.get("metadata") or {}
            name = metadata.get("name") or metadata.get("generateName", "")
            action = f"create {resource} {namespace}/{name}" if namespace else f"create {resource} {name}"
        query = _write_query(manager, dry_run=dry_run)
        return await self._send(
            self._request("POST", resource.path(namespace), action, query=query, body=body, idempotent=dry_run)
        )

    async def apply(
        self, ref: Ref, body: Any, *, manager: str = FIELD_MANAGER, force: bool = True, dry_run: bool = False
    ) -> Body:
        """Server-side apply: create the object or set the fields that `body`, JSON values or a Manifest, names.

        Fields of other managers are taken from them; with `force` off they are a Conflict that names the managers.
        """
        query = {**_write_query(manager, dry_run=dry_run), "force": "true" if force else "false"}
        content_type = "application/apply-patch+yaml"
        return await self._patch("apply", ref, _yaml(_encoded(body)), content_type, query, idempotent=True)

    async def json_patch(
        self, ref: Ref, operations: Sequence[Mapping[str, Any]], *, manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Body:
        """Apply RFC 6902 operations."""
        query = _write_query(manager, dry_run=dry_run)
        return await self._patch("patch", ref, operations, "application/json-patch+json", query, idempotent=dry_run)

    async def merge_patch(self, ref: Ref, patch: Any, *, manager: str = FIELD_MANAGER, dry_run: bool = False) -> Body:
        """Apply an RFC 7386 merge patch; with `metadata.resourceVersion` in it, only onto that state."""
        query = _write_query(manager, dry_run=dry_run)
        return await self._patch("patch", ref, patch, "application/merge-patch+json", query, idempotent=dry_run)

    async def _patch(
        self, verb: str, ref: Ref, body: Any, content_type: str, query: Mapping[str, str], *, idempotent: bool
    ) -> Body:
        request = self._request(
            "PATCH", ref.path, f"{verb} {ref}", query=query, body=body, content_type=content_type, idempotent=idempotent
        )
        return await self._send(request)

    async def delete(self, ref: Ref, options: DeleteOptions | None = None) -> Body:
        """Delete an object; NotFound if there is none, Conflict if it isn't the one that the options mean."""
        options = options or DeleteOptions()
        request = self._request(
            "DELETE", ref.path, f"delete {ref}", body=options.document(), idempotent=options.dry_run
        )
        return await self._send(request)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
    ) -> Body:
        """Any path of the API server; only GET is repeated."""
        request = self._request(
            method, path, f"{method} {path}", query=query, body=body, content_type=content_type,
            idempotent=method == "GET",
        )  # fmt: skip
        return await self.transport.send(request, attempts=self._attempts)

    @asynccontextmanager
    async def stream(
        self, path: str, action: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A long answer read as it comes, tried once; the server may be silent for so many seconds."""
        request = self._request("GET", path, action, query=query)
        try:
            async with self.transport.open(request, silence=silence) as response:
                yield response
        except NotServed:
            self.discovery.forget()
            raise

    async def _send(self, request: Request) -> Body:
        try:
            return await self.transport.send(request, attempts=self._attempts)
        except NotServed:
            self.discovery.forget()  # and asked anew
            raise

    def _request(
        self,
        method: str,
        path: str,
        action: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        idempotent: bool = False,
    ) -> Request:
        return Request(
            method=method,
            path=path,
            action=action,
            query=_query(tuple(query.items())) if query else "",
            headers=self._identity if body is None else (*self._identity, ("Content-Type", content_type)),
            body=None if body is None else _encoded(body),
            idempotent=idempotent,
        )


class _ListMetadata(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class _ListOf(msgspec.Struct, Generic[T]):
    metadata: _ListMetadata
    items: list[T] | None = None


_OF_RAW = msgspec.json.Decoder(_ListOf[msgspec.Raw])


def _page(decoder: msgspec.json.Decoder[_ListOf[T]], into: type[T], body: Body) -> Listing[T]:
    """One page, decoded as a whole; one by one, which is slower, only where that fails."""
    try:
        page = decode(decoder, body.raw, body.action)
    except Unreadable:
        return _page_of_some(msgspec.json.Decoder(into), body)
    return Listing(page.items or [], page.metadata.resource_version, page.metadata.continue_)


def _page_of_some(decoder: msgspec.json.Decoder[T], body: Body) -> Listing[T]:
    page = decode(_OF_RAW, body.raw, body.action)
    items: list[T] = []
    unread: list[Unread] = []
    for raw in page.items or ():
        item = decode_object(decoder, raw, body.action)
        if isinstance(item, Unread):
            unread.append(item)
        else:
            items.append(item)
    return Listing(items, page.metadata.resource_version, page.metadata.continue_, unread)


@lru_cache(maxsize=256)
def _query(parameters: tuple[tuple[str, str], ...]) -> str:
    """The same few, nearly always: every write's is made of the manager's name."""
    return urlencode(parameters, quote_via=quote)


def _encoded(body: Any) -> bytes:
    match body:
        case bytes():
            return body
        case Manifest():
            return msgspec.json.encode(body.content)
        case _:
            return msgspec.json.encode(body)


def _yaml(text: bytes) -> bytes:
    """JSON that a YAML parser reads as the same value: it folds or refuses some characters unless they are escaped."""
    return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0].decode()):04x}".encode(), text)


def _within(resource: Resource, namespace: str) -> str:
    return f"{resource} in {namespace}" if namespace else str(resource)


def _write_query(manager: str, *, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager, "dryRun": "All"} if dry_run else {"fieldManager": manager}
