"""The verbs of the Kubernetes API, thin and typed. Bodies stay bytes until someone needs a value."""

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.kube.config import AccessSource
from starling.kube.discovery import Discovery
from starling.kube.errors import Gone, NotServed
from starling.kube.resources import Body, Identity, Listing, Ref, Resource, Selection
from starling.kube.transport import Headers, Patience, Request, Transport

__all__ = ["FIELD_MANAGER", "Client", "DeleteOptions"]

T = TypeVar("T")

FIELD_MANAGER = "starling"
PAGE_SIZE = 500
_EVERYTHING = Selection()
_PATIENCE = Patience()


class DeleteOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How to delete: what becomes of dependents, and which state of which object is meant."""

    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False

    def body(self) -> bytes:
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
        return msgspec.json.encode(options)


class Client:
    """One API server, as one identity. An asynchronous context manager that closes its connections."""

    def __init__(self, source: AccessSource, *, patience: Patience = _PATIENCE, clock: Clock = SYSTEM_CLOCK) -> None:
        self.transport = Transport(source, patience, clock)
        self.discovery = Discovery(self.transport)
        self._headers: Headers = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection, those of derived clients included."""
        await self.transport.close()

    def impersonating(self, identity: Identity) -> "Client":
        """A client on the same connections that acts as someone else. Discovery stays our own."""
        derived = copy.copy(self)
        groups = (("Impersonate-Group", group) for group in identity.groups)
        derived._headers = (("Impersonate-User", identity.user), *groups)  # noqa: SLF001 - it is one of us
        return derived

    async def get(self, ref: Ref) -> Body:
        """One object, or a subresource of it."""
        return await self._send("GET", ref.path, f"get {ref}", idempotent=True)

    async def list(
        self, resource: Resource, into: type[T], selection: Selection = _EVERYTHING, *, page_size: int = PAGE_SIZE
    ) -> Listing[T]:
        """All objects selected, fetched in pages, each decoded to the fields that `into` names."""
        for last_try in (False, True):
            items: list[T] = []
            try:
                async for page in self.pages(resource, into, selection, page_size=page_size):
                    items.extend(page.items)
            except Gone:  # the continue token outlived the server's memory: only a fresh start is consistent
                if last_try:
                    raise
            else:
                return Listing(items, page.resource_version)
        raise AssertionError("unreachable: the last try returns or raises")

    async def pages(
        self,
        resource: Resource,
        into: type[T],
        selection: Selection = _EVERYTHING,
        *,
        page_size: int = PAGE_SIZE,
        attempts: int | None = None,
    ) -> AsyncIterator[Listing[T]]:
        """The same page by page; raises Gone where the server has forgotten the listing that was begun."""
        decoder = msgspec.json.Decoder(_ListOf[into])  # type: ignore[valid-type] # a type at run time
        query = {"limit": str(page_size), **selection.query()}
        action = f"list {resource}" + (f" in {selection.namespace}" if selection.namespace else "")
        while True:
            body = await self._send(
                "GET", resource.path(selection.namespace), action, query=query, idempotent=True, attempts=attempts
            )
            page = decoder.decode(body.raw)
            more = page.metadata.continue_
            yield Listing(page.items or [], page.metadata.resource_version, more)
            if not more:
                return
            query["continue"] = more

    async def create(
        self, resource: Resource, body: Any, *, namespace: str = "", manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Body:
        """Create an object; with `metadata.generateName` the server chooses its name. Never repeated blindly."""
        return await self._send(
            "POST",
            resource.path(namespace),
            f"create {resource}" + (f" in {namespace}" if namespace else ""),
            query=_write_query(manager, dry_run=dry_run),
            body=_encode(body),
            idempotent=dry_run,
        )

    async def apply(
        self, ref: Ref, body: Any, *, manager: str = FIELD_MANAGER, force: bool = True, dry_run: bool = False
    ) -> Body:
        """Server-side apply: create the object or set the fields that `body` names."""
        return await self._send(
            "PATCH",
            ref.path,
            f"apply {ref}",
            query=_write_query(manager, dry_run=dry_run, force=force),
            # JSON is YAML, and the content type decides what kind of patch it is.
            body=_encode(body),
            content_type="application/apply-patch+yaml",
            idempotent=True,
        )

    async def json_patch(
        self, ref: Ref, operations: Sequence[Mapping[str, Any]], *, manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Body:
        """Apply RFC 6902 operations."""
        return await self._patch(ref, operations, "application/json-patch+json", manager, dry_run=dry_run)

    async def merge_patch(self, ref: Ref, patch: Any, *, manager: str = FIELD_MANAGER, dry_run: bool = False) -> Body:
        """Apply an RFC 7386 merge patch; with `metadata.resourceVersion` in it, only onto that state."""
        return await self._patch(ref, patch, "application/merge-patch+json", manager, dry_run=dry_run)

    async def _patch(self, ref: Ref, patch: Any, content_type: str, manager: str, *, dry_run: bool) -> Body:
        return await self._send(
            "PATCH",
            ref.path,
            f"patch {ref}",
            query=_write_query(manager, dry_run=dry_run),
            body=_encode(patch),
            content_type=content_type,
            idempotent=dry_run,
        )

    async def delete(self, ref: Ref, options: DeleteOptions | None = None) -> Body:
        """Delete an object; NotFound if there is none, Conflict if it isn't the one that the options mean."""
        options = options or DeleteOptions()
        return await self._send("DELETE", ref.path, f"delete {ref}", body=options.body(), idempotent=options.dry_run)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Body:
        """Any path of the API server; only GET is repeated."""
        return await self._send(
            method,
            path,
            f"{method} {path}",
            query=query,
            body=None if body is None else _encode(body),
            content_type=content_type,
            idempotent=method == "GET",
        )

    def stream(
        self, path: str, action: str, query: Mapping[str, str], *, silence: float
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """A long answer read as it comes, tried once; the server may be silent for so many seconds."""
        return self.transport.open(self._request("GET", path, action, query=query), silence=silence)

    async def _send(self, method: str, path: str, action: str, *, attempts: int | None = None, **parts: Any) -> Body:
        try:
            return await self.transport.send(self._request(method, path, action, **parts), attempts=attempts)
        except NotServed:
            self.discovery.forget()
            raise

    def _request(
        self,
        method: str,
        path: str,
        action: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        idempotent: bool = False,
    ) -> Request:
        headers = self._headers if body is None else (*self._headers, ("Content-Type", content_type))
        return Request(
            method=method,
            path=path,
            action=action,
            query=urlencode(query, quote_via=quote) if query else "",
            headers=headers,
            body=body,
            idempotent=idempotent,
        )


class _ListMetadata(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class _ListOf(msgspec.Struct, Generic[T]):
    metadata: _ListMetadata
    items: list[T] | None = None


def _write_query(manager: str, *, dry_run: bool, force: bool | None = None) -> dict[str, str]:
    query = {"fieldManager": manager}
    if force is not None:
        query["force"] = "true" if force else "false"
    if dry_run:
        query["dryRun"] = "All"
    return query


def _encode(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
