"""How an API server is addressed: resources, references to objects in them, and the values that come back."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from starling.errors import InputError
from starling.kube.errors import Unreadable
from starling.objects import GroupVersionKind

__all__ = [
    "Body",
    "HasMetadata",
    "Identity",
    "Listing",
    "Metadata",
    "Named",
    "Ref",
    "Resource",
    "Selection",
    "Unread",
    "decode",
    "decode_object",
]

T = TypeVar("T")

_QUOTED = re.compile(r"(['\"]).*\1", re.DOTALL)
_PLACE = re.compile(r" - at (?:`key` in )?`\$[^`]*`\Z")


class Resource(msgspec.Struct, frozen=True):
    """A collection that an API server serves: what discovery says of one kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind's full name."""
        return GroupVersionKind(self.group, self.version, self.kind)

    def ref(self, name: str, namespace: str = "") -> "Ref":
        """A reference to one object."""
        return Ref(self, name, namespace)

    def path(self, namespace: str = "") -> str:
        """The collection's path; without a namespace, the one across all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            root = f"{root}/namespaces/{quote(namespace, safe='')}"
        return f"{root}/{self.plural}"

    def check_namespace(self, namespace: str) -> None:
        """Refuse an object without a namespace where it must have one, or with one where it can't."""
        if self.namespaced and not namespace:
            raise InputError(f"a {self} is in a namespace, and none was given")
        if namespace and not self.namespaced:
            raise InputError(f"a {self} is in no namespace, and {namespace} was given")

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Ref(msgspec.Struct, frozen=True):
    """One object on an API server, or a subresource of it."""

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""

    def __post_init__(self) -> None:
        # A path that ends in "/" is the collection's: a DELETE on it would take everything.
        for what, value in (("name", self.name), ("namespace", self.namespace or "default")):
            if value in ("", ".", "..") or "/" in value or "%" in value:
                raise InputError(f"{value!r} can't be the {what} of a {self.resource}")
        self.resource.check_namespace(self.namespace)

    @property
    def status(self) -> "Ref":
        """The object's status subresource."""
        return Ref(self.resource, self.name, self.namespace, "status")

    @property
    def path(self) -> str:
        """Its path."""
        path = f"{self.resource.path(self.namespace)}/{quote(self.name, safe='')}"
        return f"{path}/{self.subresource}" if self.subresource else path

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {name}" + (f" ({self.subresource})" if self.subresource else "")


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a resource: one namespace (empty: all), label and field selectors as the API writes them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """The selectors as query parameters."""
        return {
            name: value for name, value in (("labelSelector", self.labels), ("fieldSelector", self.fields)) if value
        }


class Identity(msgspec.Struct, frozen=True):
    """Whom to act as."""

    user: str
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A blank header is none: the request would be made with our own rights.
        given: object = self.groups
        names = (self.user, *self.groups)
        if isinstance(given, str) or not all(name.strip() and name.isprintable() for name in names):
            raise InputError(f"can't act as user {self.user!r} with groups {self.groups!r}: not names")

    @classmethod
    def service_account(cls, namespace: str, name: str) -> "Identity":
        """A service account with the groups that the API server itself would give it."""
        if not namespace or not name:
            raise InputError(f"a service account has a namespace and a name, not {namespace!r} and {name!r}")
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return cls(f"system:serviceaccount:{namespace}:{name}", groups)


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an object's metadata that tells which object it is, and which state of it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class HasMetadata(Protocol):
    """The metadata that a watched type must decode, besides whatever else it asks for."""

    @property
    def name(self) -> str: ...  # noqa: D102 - as in Metadata
    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def resource_version(self) -> str: ...  # noqa: D102


class Named(Protocol):
    """An object with metadata: what can be watched."""

    @property
    def metadata(self) -> HasMetadata: ...  # noqa: D102 - the type says it


class Body(msgspec.Struct, frozen=True):
    """An answer: bytes until someone needs a value."""

    raw: bytes
    action: str
    warnings: tuple[str, ...] = ()
    etag: str = ""
    code: int = 200

    @property
    def created(self) -> bool:
        """Whether the write that this answers made a new object."""
        return self.code == 201

    @property
    def not_modified(self) -> bool:
        """Whether the server says that what we have is what it has."""
        return self.code == 304

    def decode(self, into: type[T]) -> T:
        """The fields that `into` names; the rest is skipped unread. Unreadable where they aren't there."""
        wanted: Any = into  # mypy takes classes for unhashable
        decoder: msgspec.json.Decoder[T] = _decoder(wanted)
        return decode(decoder, self.raw, self.action)

    def json(self) -> Any:
        """Everything, as plain values."""
        return self.decode(object)


@cache
def _decoder(into: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(into)


def decode(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, action: str) -> T:
    """What a decoder makes of an answer; Unreadable, with the action, where it can't."""
    try:
        return decoder.decode(raw)
    except _UNDECODED as error:
        raise Unreadable(action, f"the answer isn't what was asked for: {_why(error)}") from error


class Unread(msgspec.Struct, frozen=True):
    """An object is there, in a state that can't be decoded: which, and why."""

    metadata: Metadata
    cause: str

    def __str__(self) -> str:
        name = self.metadata.name
        return f"{self.metadata.namespace}/{name}" if self.metadata.namespace else name


class _Identified(msgspec.Struct):
    metadata: Metadata


def decode_object(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw, action: str) -> T | Unread:
    """What a decoder makes of one object among others; Unreadable only where it can't even be told which it is."""
    try:
        return decoder.decode(raw)
    except _UNDECODED as error:
        return Unread(decode(_IDENTIFIED, raw, action).metadata, _why(error))


_IDENTIFIED = msgspec.json.Decoder(_Identified)
_UNDECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _why(error: Exception) -> str:
    """Msgspec's words and the place, without values: it quotes what isn't one of a few, and checks may say anything."""
    words, place = str(error), ""
    if found := _PLACE.search(words):
        words, place = words[: found.start()], found[0]
    return ("a value that isn't allowed" if error.__cause__ is not None else _QUOTED.sub("…", words)) + place


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """Objects of one resource, all seen at one resourceVersion; `more` continues an unfinished page.

    A page leaves out the objects that can't be decoded, and has them in `unread`.
    """

    items: Sequence[T]
    resource_version: str
    more: str = ""
    unread: Sequence[Unread] = ()
