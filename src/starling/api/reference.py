"""The field reference, from the same CRDs that the API server gets."""

import json
from collections.abc import Iterator
from typing import Any

from starling.api.crds import KINDS, crd
from starling.api.meta import Resource
from starling.api.schema import Schema

__all__ = ["reference"]

_PREFACE = """\
# Kinds

Every kind of `starling.dev/v1alpha1`, every field of it. `kubectl explain` says the same on a hub, and
`kubectl get starling -A` lists all objects. This page is generated from the code: `make docs`.
"""


def reference() -> str:
    """A Markdown page: for each kind its names, and its fields with type, default, description and rules."""
    return "\n".join([_PREFACE, *(_section(resource) for resource in KINDS)])


def _section(resource: type[Resource]) -> str:
    document = crd(resource)["spec"]
    names, version = document["names"], document["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    called = [names["plural"], names["singular"], *names.get("shortNames", [])]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    lines = [
        f"## {names['kind']}",
        "",
        schema["description"],
        "",
        f"For kubectl: {', '.join(f'`{name}`' for name in called)}. Columns: {', '.join(columns)}.",
        "",
        "| field | type | default | meaning |",
        "|---|---|---|---|",
        *(_row(path, field, required=required) for path, field, required in _fields(schema, "")),
    ]
    return "\n".join(lines) + "\n"


def _fields(schema: Schema, prefix: str) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below a schema, depth first: its path, its schema, whether it is required."""
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, field, name in schema.get("required", [])
        below = field.get("items") or field.get("additionalProperties") or field
        yield from _fields(below, f"{path}{_step(field)}.")


def _step(field: Schema) -> str:
    if "items" in field:
        return "[]"
    return ".*" if "additionalProperties" in field else ""


def _row(path: str, field: Schema, *, required: bool) -> str:
    default = _code(field["default"]) if "default" in field else ("required" if required else "")
    meaning = [field["description"], *(f"Rule: {message}." for message in _messages(field))]
    cells = (f"`{path}`", _type(field), default, " ".join(meaning))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _messages(field: Schema) -> Iterator[str]:
    """What the rules on a field say, and those on the entries of a list of it."""
    for schema in (field, field.get("items", {})):
        for rule in schema.get("x-kubernetes-validations", []):
            yield rule["message"]


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(_code(value) for value in field["enum"])
    if "items" in field:
        return f"list of {_type(field['items'])}{_limits(field, 'minItems', 'maxItems')}"
    if "additionalProperties" in field:
        return f"map to {_type(field['additionalProperties'])}{_limits(field, 'minProperties', 'maxProperties')}"
    return _scalar(field)


def _scalar(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        name = "integer or string"
    else:
        name = "date-time" if field.get("format") == "date-time" else field.get("type", "anything")
    matching = f" matching `{field['pattern']}`" if "pattern" in field else _limits(field, "minLength", "maxLength")
    return f"{name}{_limits(field, 'minimum', 'maximum')}{matching}"


def _limits(field: Schema, lowest: str, highest: str) -> str:
    low, high = field.get(lowest), field.get(highest)
    if low is None and high is None:
        return ""
    return f" ({'' if low is None else low}…{'' if high is None else high})"


def _code(value: Any) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
