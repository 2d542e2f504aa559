"""Secrets that objects refer to, read when they are needed; none is watched, and none kept for long."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api.v1alpha1 import CredentialsReference, LocalSecretReference
from starling.errors import InputError
from starling.kube import Client, NotFound, Resource
from starling.sources import ANONYMOUS, Credentials, Keys

__all__ = ["SECRETS", "Secrets", "credentials_name", "packed", "unpacked"]

SECRETS: Final = Resource("", "v1", "Secret", "secrets", namespaced=True)
FRESH: Final = 15.0
"""Seconds for which what was read counts as what is there: a rollout asks for the same one for every cluster."""


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


class Secrets:
    """Reads them. Mutable: it remembers for some seconds what it read, but not that there was nothing."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._read: dict[tuple[str, str], tuple[float, Mapping[str, bytes]]] = {}

    async def data(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """What is in a Secret; None if there is none."""
        now = self._clock.monotonic()
        self._read = {place: known for place, known in self._read.items() if now - known[0] < FRESH}
        if (known := self._read.get((namespace, name))) is not None:
            return known[1]
        found = await self._get(namespace, name)
        if found is not None:
            self._read[namespace, name] = (now, found)
        return found

    async def credentials(self, namespace: str, reference: LocalSecretReference | None) -> Credentials:
        """Who we are to a git server; anonymous if nothing is referred to."""
        if reference is None:
            return ANONYMOUS
        data = await self._wanted(namespace, reference.name)
        key = reference.key if isinstance(reference, CredentialsReference) else ""
        if key:
            if key not in data:
                raise InputError(f"Secret {namespace}/{reference.name} has no entry {key}")
            data = unpacked(data[key])
        found = Credentials.from_secret(data)
        if found == ANONYMOUS:
            raise InputError(
                f"Secret {namespace}/{reference.name} holds no git credentials",
                hint=f"it needs one or more of {', '.join(Credentials.KEYS)}",
            )
        return found

    async def keys(self, namespace: str, reference: LocalSecretReference) -> Keys:
        """The keys whose signatures are trusted."""
        data = await self._wanted(namespace, reference.name)
        return Keys.of(value.decode(errors="replace") for value in data.values())

    async def _wanted(self, namespace: str, name: str) -> Mapping[str, bytes]:
        data = await self.data(namespace, name)
        if data is None:
            raise InputError(
                f"there is no Secret {namespace}/{name}", hint=f"kubectl -n {namespace} create secret generic {name} …"
            )
        return data

    async def _get(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            found = (await self._client.get(SECRETS.ref(name, namespace))).decode(_Secret)
        except NotFound:
            return None
        return {key: base64.b64decode(value) for key, value in (found.data or {}).items()}


def credentials_name(instance: str) -> str:
    """The Secret on a cluster that holds the credentials from an installation's hub."""
    return f"starling-credentials-{instance}"


def packed(data: Mapping[str, bytes]) -> bytes:
    """A Secret's data as one JSON document, to be an entry of another; the same data gives the same bytes."""
    return msgspec.json.encode({key: base64.b64encode(data[key]).decode() for key in sorted(data)})


def unpacked(document: bytes) -> dict[str, bytes]:
    """What `packed` made of it."""
    try:
        entries = msgspec.json.decode(document, type=dict[str, str])
        return {key: base64.b64decode(value, validate=True) for key, value in entries.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error):
        raise InputError("an entry of a Secret isn't the JSON document that it should be") from None
