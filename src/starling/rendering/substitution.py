"""Puts variables into objects, as Flux does after a build: `replicas: ${N}` becomes a number.

Flux writes an object as YAML, expands the text (`starling.rendering.envsubst`), and reads it again, so a value means
what YAML makes of it where it stands: `3`, `yes` and `{a: b}` become a number, a boolean, a mapping, wherever the
text is written without quotes, and it is unless YAML needs them. Quotes in the manifest don't count, they are gone
when it was read; a value that is to stay text brings its own: `"3"`. Line breaks in values are left out.

Here the same is done with each text that has an expression, by itself, and so are keys. So everything else stays as
it is and costs nothing, an error names the field, and no value can reach beyond its field: what in Flux would open a
quote or a bracket for the next lines to close, or add a field or an object of its own, is refused.
"""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml

from starling.objects import Manifest, ManifestError, load_documents
from starling.rendering.envsubst import expand, mentioned
from starling.rendering.errors import SubstitutionError, VariableNotSet
from starling.rendering.operators import refuse_bomb

__all__ = ["substitute"]

_NAME: Final = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
_Path = tuple[str | int, ...]
_OPT_OUTS: Final = ("kustomize.toolkit.fluxcd.io/substitute", "starling.dev/substitute")


def substitute(manifests: Sequence[Manifest], variables: Mapping[str, str], *, strict: bool = False) -> list[Manifest]:
    """The manifests with variables put in; where nothing is to be put in, the very same ones.

    Objects with a label or annotation `…/substitute: disabled` are left alone. As in Flux, so are all if there are no
    variables (a script's `${HOME}` isn't ours then), unless strict asks for each to be there.
    SubstitutionError if a name is none, an expression can't be read, or the result isn't one object;
    VariableNotSet if one is missing in strict mode.
    """
    if not variables and not strict:
        return list(manifests)
    values = {name: _value(name, value) for name, value in variables.items()}
    return [each if _left_alone(each) else _Substitution(each, values, strict).result() for each in manifests]


def _value(name: str, value: str) -> str:
    """A variable's value as Flux takes it, without line breaks."""
    if not _NAME.fullmatch(name):
        raise SubstitutionError(f"{name!r} can't be a variable's name", hint="letters, digits and _, no digit in front")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SubstitutionError(f"the value of {name} is not UTF-8") from None
    return value.replace("\n", "")


def _left_alone(manifest: Manifest) -> bool:
    if b"$" not in msgspec.json.encode(manifest.content):
        return True
    words = (manifest.labels, manifest.annotations)
    return any(word.get(opt_out) == "disabled" for word in words for opt_out in _OPT_OUTS)


@dataclass(slots=True)
class _Substitution:
    """One object's; what has nothing to put in is passed on, not copied. `size` is how much was put in so far."""

    manifest: Manifest
    values: Mapping[str, str]
    strict: bool
    size: int = 0

    def result(self) -> Manifest:
        content = self._changed(self.manifest.content, ())
        if content is self.manifest.content:
            return self.manifest
        try:
            return self.manifest.with_content(content)
        except ManifestError:
            place = self._place(_misfit(self.manifest.content, content))
            raise SubstitutionError(
                f"{place} is missing or no text once variables are put in",
                hint="a value that is to stay text, though YAML reads it as something else, brings quotes: '\"1\"'",
            ) from None

    def _changed(self, value: Any, path: _Path) -> Any:
        if isinstance(value, str):
            return self._text(value, path) if _has_expression(value) else value
        if isinstance(value, list):
            items = [self._changed(item, (*path, number)) for number, item in enumerate(value)]
            return value if all(map(operator.is_, items, value)) else items
        if isinstance(value, dict):
            return self._mapping(value, path)
        return value

    def _mapping(self, mapping: dict[str, Any], path: _Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        same = True
        for key, value in mapping.items():
            below = (*path, key)
            new_key = self._key(key, below) if _has_expression(key) else key
            new_value = self._changed(value, below)
            if new_key in found:
                raise SubstitutionError(f"{self._place(path)} has a key twice once variables are put in")
            found[new_key] = new_value
            same = same and new_key is key and new_value is value
        return mapping if same else found

    def _text(self, text: str, path: _Path) -> Any:
        in_list = isinstance(path[-1], int)
        written = _written([_LIST, _scalar(text), _LIST_END] if in_list else [_MAP, _WORD, _scalar(text), _MAP_END])
        read = self._read(written, text, path)
        match read:
            case [value] if in_list:
                return value
            case {"k": value} if len(read) == 1 and not in_list:
                return value
        raise self._broken(written, path, "it would become more than one field")

    def _key(self, key: str, path: _Path) -> str:
        # Indented, since at the start of a line --- would be no key.
        written = _written([_MAP, _WORD, _MAP, _scalar(key), _WORD, _MAP_END, _MAP_END])
        match self._read(written, key, path):
            case {"k": {**found}} if list(found.values()) == ["k"]:
                return str(next(iter(found)))
        raise self._broken(written, path, "it would be no key")

    def _read(self, written: str, text: str, path: _Path) -> Any:
        try:
            expanded = expand(written, self.values, strict=self.strict)
            self.size += len(expanded)
            refuse_bomb(self.size)
        except SubstitutionError as error:
            raise self._placed(error, text, path) from None
        try:
            documents = load_documents(expanded)
        except ManifestError as error:
            # Only the parser's own words are sure not to quote a value.
            cause = error.__cause__
            problem = cause.problem if isinstance(cause, yaml.MarkedYAMLError) else None
            raise self._broken(written, path, problem or "it would be no YAML") from None
        if len(documents) != 1:
            raise self._broken(written, path, "it would be none or several documents")
        return documents[0].value

    def _placed(self, error: SubstitutionError, text: str, path: _Path) -> SubstitutionError:
        """The error with its place, and with lines as the text has them rather than as it was written."""
        if isinstance(error, VariableNotSet):
            return VariableNotSet(error.variable, self._place(path))
        try:
            expand(text, self.values, strict=self.strict)
        except SubstitutionError as as_written:
            error = as_written
        hint = f"{error.hint}, or leave the whole object alone by the annotation {_OPT_OUTS[0]}: disabled"
        return SubstitutionError(f"{self._place(path)}: {error.message}", hint=hint)

    def _broken(self, written: str, path: _Path, problem: str) -> SubstitutionError:
        names = " and ".join(mentioned(written)) or "$"
        return SubstitutionError(
            f"{self._place(path)} can't be read once {names} is put in: {problem}",
            hint="a value is read as YAML where the expression stood; text with signs of YAML's needs quotes",
        )

    def _place(self, path: _Path) -> str:
        return f"{self.manifest.origin}: {f'{_said(path)} of ' if path else ''}{self.manifest.key}"


def _has_expression(text: str) -> bool:
    return "${" in text or "$$" in text


def _said(path: _Path) -> str:
    """As people write it: spec.containers[0]['a.b']."""
    plain = re.compile(r"[\w-]+")
    parts = [f".{each}" if isinstance(each, str) and plain.fullmatch(each) else f"[{each!r}]" for each in path]
    return "".join(parts).removeprefix(".")


_MAP: Final = yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
_MAP_END: Final = yaml.MappingEndEvent()
_LIST: Final = yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
_LIST_END: Final = yaml.SequenceEndEvent()
_WORD: Final = yaml.ScalarEvent(None, None, (True, True), "k")


def _scalar(text: str) -> yaml.ScalarEvent:
    """As Go's writer has it: lines as a block; else plain, in single or double quotes, the first that can hold it."""
    return yaml.ScalarEvent(None, None, (True, True), text, style="|" if "\n" in text else None)


def _written(events: Sequence[yaml.Event]) -> str:
    """One document of these events, in one line unless the text has lines."""
    start, end = yaml.DocumentStartEvent(explicit=False), yaml.DocumentEndEvent(explicit=False)
    whole = [yaml.StreamStartEvent(), start, *events, end, yaml.StreamEndEvent()]
    return str(yaml.emit(whole, Dumper=yaml.CDumper, allow_unicode=True, width=2**31 - 1))


def _misfit(before: dict[str, Any], after: dict[str, Any]) -> _Path:
    """The field for which this is no object any more; not what it is now, which may be secret."""
    metadata = after.get("metadata")
    if not isinstance(metadata, dict):
        return ("metadata",)
    for field in ("name", "generateName", "namespace"):
        if not isinstance(metadata.get(field, ""), str):
            return "metadata", field
    for field in ("labels", "annotations"):
        words = metadata.get(field)
        if not isinstance(words, dict | None):
            return "metadata", field
        for key, word in (words or {}).items():
            if not isinstance(word, str):
                known = key in (before["metadata"].get(field) or {})
                return ("metadata", field, key) if known else ("metadata", field)
    return ("kind",) if isinstance(after.get("apiVersion"), str) else ("apiVersion",)
