"""Keeps what is in Secrets out of everything that is printed, stored or sent on."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from starling.objects import canonical_json

__all__ = ["MASK", "MASK_CHANGED", "Seals", "Token", "masked", "quotes_secret"]

MASK = "***"
MASK_CHANGED = "*** (changed)"

_VALUES = ("data", "stringData")
_COPIES = (  # annotations in which tools keep the whole object
    "kubectl.kubernetes.io/last-applied-configuration",
    "objectset.rio.cattle.io/applied",
    "banzaicloud.com/last-applied",
    "kapp.k14s.io/original",
)
_TELLING = 4  # so many characters of a secret in a row are too many


@dataclass(frozen=True, slots=True)
class Token:
    """Stands for a secret; two of one comparison are equal if and only if the secrets are."""

    number: int

    def __repr__(self) -> str:
        return MASK


@dataclass(frozen=True, slots=True)
class Seals:
    """The tokens of one comparison. Knows the secrets, so it must not outlive it."""

    _numbers: dict[bytes, int] = field(default_factory=dict, repr=False)

    def sealed(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The object, with tokens for values if it is a Secret; what holds a token already stays."""
        return _replaced(content, self._token) if _is_secret(content) else content

    def _token(self, value: Any) -> Token:
        if isinstance(value, Token):
            return value
        return Token(self._numbers.setdefault(canonical_json(value), len(self._numbers)))


def masked(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object as it may be printed: `***` for each value of a Secret, anything else as it is."""
    return _replaced(content, lambda _: MASK) if _is_secret(content) else content


def quotes_secret(words: str, content: Mapping[str, Any]) -> bool:
    """Whether words about an object quote what is in it, given that it is a Secret; in doubt they do."""
    if not _is_secret(content):
        return False
    values = [value for name in _VALUES for value in _leaves(content.get(name))]
    if not all(isinstance(value, str) for value in values):
        return True  # how a server would write it can't be known
    forms = {form for value in values for form in (value, _decoded(value), base64.b64encode(value.encode()).decode())}
    return any(_shows(words, form) for form in forms if form)


def _is_secret(content: Mapping[str, Any]) -> bool:
    return content.get("kind") == "Secret" and "/" not in str(content.get("apiVersion"))


def _replaced(content: Mapping[str, Any], replace: Callable[[Any], Any]) -> dict[str, Any]:
    found = dict(content)
    for name in _VALUES:
        if (values := found.get(name)) is not None:
            found[name] = (
                {key: replace(value) for key, value in values.items()} if _mapping(values) else replace(values)
            )
    metadata = found.get("metadata")
    if _mapping(metadata) and _mapping(annotations := metadata.get("annotations")):
        hidden = {name: replace(value) if name in _COPIES else value for name, value in annotations.items()}
        found["metadata"] = {**metadata, "annotations": hidden}
    return found


def _mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _shows(words: str, secret: str) -> bool:
    if len(secret) < _TELLING:
        return f'"{secret}"' in words
    return any(secret[start : start + _TELLING] in words for start in range(len(secret) - _TELLING + 1))
