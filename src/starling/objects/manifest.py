"""A Manifest: one object that someone wants in a cluster."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from starling.errors import InputError
from starling.objects.digests import digest
from starling.objects.identity import GroupVersionKind, ObjectKey
from starling.objects.origin import ManifestError, Origin

__all__ = ["Manifest", "refuse_duplicates"]

_NOWHERE: Final = Origin()
_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object's content, checked to say what it is, and where it was written.

    The content is not copied: it belongs to the Manifest from then on, and nobody changes it, since key and digest
    rest on it. Who wants another content takes `changed`, which works on a copy.
    Two are equal if content and origin are; they aren't hashable: their `key` is.
    """

    content: dict[str, Any] = field(repr=False)  # a Secret's values have no business in a log
    origin: Origin = _NOWHERE
    gvk: GroupVersionKind = field(init=False, compare=False)
    key: ObjectKey = field(init=False, compare=False)
    _digest: list[str] = field(init=False, compare=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        gvk, key = _identify(self.content, self.origin)
        object.__setattr__(self, "gvk", gvk)
        object.__setattr__(self, "key", key)

    @property
    def name(self) -> str:
        """metadata.name; "" while the API server has yet to make one from generateName."""
        return self.key.name

    @property
    def namespace(self) -> str:
        """metadata.namespace; "" if it names none."""
        return self.key.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels, empty if there are none."""
        return self.content["metadata"].get("labels") or _NOTHING

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, empty if there are none."""
        return self.content["metadata"].get("annotations") or _NOTHING

    @property
    def digest(self) -> str:
        """The digest of the content, computed once."""
        if not self._digest:
            self._digest.append(digest(self.content))
        return self._digest[0]

    def with_content(self, content: dict[str, Any]) -> "Manifest":
        """Another Manifest from the same place, to which this content belongs from now on."""
        return Manifest(content, self.origin)

    def changed(self, change: Callable[[dict[str, Any]], object]) -> "Manifest":
        """Another Manifest, whose content is a deep copy of this one's after `change` worked on it."""
        content = copy.deepcopy(self.content)
        change(content)
        return Manifest(content, self.origin)

    def __str__(self) -> str:
        return str(self.key)


def refuse_duplicates(manifests: Iterable[Manifest]) -> None:
    """Raise a ManifestError that names both places if two manifests are of one object."""
    seen: dict[ObjectKey, Manifest] = {}
    for manifest in manifests:
        if not manifest.name:
            continue
        first = seen.setdefault(manifest.key, manifest)
        if first is not manifest:
            raise ManifestError(
                f"{manifest.key} is also at {first.origin}",
                manifest.origin,
                hint="an object may be written once only: remove one, or give it another name",
            )


def _identify(content: Any, origin: Origin) -> tuple[GroupVersionKind, ObjectKey]:
    if not isinstance(content, dict):
        raise ManifestError(
            f"{_called(content)} is no object", origin, hint="a manifest starts with apiVersion and kind"
        )
    api_version = _text(content, "apiVersion", origin)
    kind = _text(content, "kind", origin)
    if not api_version or not kind:
        missing = "kind" if api_version else "apiVersion"
        raise ManifestError(f"{missing} is missing", origin, hint="a manifest says its apiVersion and kind")
    try:
        gvk = GroupVersionKind.from_api_version(api_version, kind)
    except InputError as error:
        raise ManifestError(error.message, origin, hint=error.hint) from error
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        problem = "is missing" if metadata is None else f"is {_called(metadata)}, not a mapping"
        raise ManifestError(f"metadata of {kind} {problem}", origin)
    return gvk, _key(gvk, metadata, origin)


def _key(gvk: GroupVersionKind, metadata: dict[str, Any], origin: Origin) -> ObjectKey:
    within = f"{gvk.kind}'s metadata."
    name = _text(metadata, "name", origin, within)
    if not name and not _text(metadata, "generateName", origin, within):
        raise ManifestError(f"{gvk.kind} has no metadata.name", origin)
    for words in ("labels", "annotations"):
        _check_texts(metadata.get(words), f"{within}{words}", origin)
    return ObjectKey(gvk.group, gvk.kind, _text(metadata, "namespace", origin, within), name)


def _text(mapping: dict[str, Any], field_name: str, origin: Origin, within: str = "") -> str:
    value = mapping.get(field_name)
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse_type(within + field_name, value, origin)
    return value


def _check_texts(value: Any, path: str, origin: Origin) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        raise ManifestError(f"{path} is {_called(value)}, not a mapping", origin)
    for key, item in value.items():
        if not isinstance(item, str):
            _refuse_type(f"{path}[{key!r}]", item, origin)


def _refuse_type(path: str, value: Any, origin: Origin) -> NoReturn:
    hint = None if isinstance(value, dict | list) else "put it in quotes"
    raise ManifestError(f"{path} is {_called(value)}, not text", origin, hint=hint)


def _called(value: Any) -> str:
    """A value as a message names it."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return f"the number {value}"
