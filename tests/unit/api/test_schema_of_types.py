"""Each type of a field has one form in a CRD, and what has none is refused by name."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from starling.api.declaration import ATOMIC_MAP, SET, Rule, checked, doc, exactly_one_of, keyed_by, rules
from starling.api.schema import SchemaError, schema_of


class Colour(enum.Enum):
    RED = "Red"
    BLUE = "Blue"


class Leaf(Struct, frozen=True):
    """A leaf."""

    name: Annotated[str, doc("Its name.")]
    size: Annotated[int, doc("Its size.")] = 3


LEAF = {
    "type": "object",
    "description": "A leaf.",
    "properties": {
        "name": {"type": "string", "description": "Its name."},
        "size": {"type": "integer", "format": "int64", "description": "Its size.", "default": 3},
    },
    "required": ["name"],
}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def field_schema(annotation: Any, *default: Any) -> dict[str, Any]:
    """The schema of a field of that type, without its description."""
    fields = [("field", Annotated[annotation, doc("It.")], *default)]
    struct = msgspec.defstruct("Holder", fields, frozen=True)
    schema: dict[str, Any] = schema_of(struct)["properties"]["field"]
    assert schema.pop("description") == "It."
    return schema


TYPES = {
    "bool": (bool, {"type": "boolean"}),
    "string": (str, {"type": "string"}),
    "string limits": (
        Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")],
        {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
    ),
    "integer": (int, {"type": "integer", "format": "int64"}),
    "int32": (Annotated[int, Meta(extra_json_schema={"format": "int32"})], {"type": "integer", "format": "int32"}),
    "integer from to": (
        Annotated[int, Meta(ge=0, le=9)],
        {"type": "integer", "format": "int64", "minimum": 0, "maximum": 9},
    ),
    "integer between": (
        Annotated[int, Meta(gt=0, lt=9)],
        {"type": "integer", "format": "int64", "minimum": 1, "maximum": 8},
    ),
    "number": (Annotated[float, Meta(gt=0)], {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
    "date-time": (datetime, {"type": "string", "format": "date-time"}),
    "literal": (Literal["Now", "Finish"], {"type": "string", "enum": ["Finish", "Now"]}),
    "literal of integers": (Literal[1, 2], {"type": "integer", "format": "int64", "enum": [1, 2]}),
    "enum": (Colour, {"type": "string", "enum": ["Red", "Blue"]}),
    "optional": (str | None, {"type": "string"}),
    "int or string": (int | str, {"x-kubernetes-int-or-string": True}),
    "int or string limits": (
        Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern="%$")] | None,
        {"x-kubernetes-int-or-string": True, "minimum": 1, "pattern": "%$"},
    ),
    "tuple": (
        Annotated[tuple[str, ...], Meta(max_length=4)],
        {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "atomic"},
    ),
    "list": (
        Annotated[list[int], Meta(min_length=1)],
        {
            "type": "array",
            "items": {"type": "integer", "format": "int64"},
            "minItems": 1,
            "x-kubernetes-list-type": "atomic",
        },
    ),
    "set": (
        Annotated[tuple[str, ...], SET],
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ),
    "keyed list": (
        Annotated[tuple[Leaf, ...], keyed_by("name")],
        {
            "type": "array",
            "items": LEAF,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    "map": (
        Annotated[dict[str, int], Meta(max_length=4), ATOMIC_MAP],
        {
            "type": "object",
            "additionalProperties": {"type": "integer", "format": "int64"},
            "maxProperties": 4,
            "x-kubernetes-map-type": "atomic",
        },
    ),
    "map of structs": (dict[str, Leaf], {"type": "object", "additionalProperties": LEAF}),
    "map of anything": (dict[str, Any], {"type": "object"} | ANYTHING),
    "raw": (msgspec.Raw, ANYTHING),
    "struct": (Leaf, LEAF | {"description": "It."}),
    "rules": (
        Annotated[
            Annotated[str, checked(Rule("self != ''", "must be there"))],
            checked(Rule("self != 'a'", "must not be a", "'not ' + self", ".x", "FieldValueForbidden")),
        ],
        {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self != ''", "message": "must be there"},
                {
                    "rule": "self != 'a'",
                    "message": "must not be a",
                    "messageExpression": "'not ' + self",
                    "fieldPath": ".x",
                    "reason": "FieldValueForbidden",
                },
            ],
        },
    ),
}


@pytest.mark.parametrize(("annotation", "expected"), TYPES.values(), ids=TYPES)
def test_a_type_has_its_form(annotation: Any, expected: dict[str, Any]) -> None:
    """A field's type, its limits and its markers all show in the schema."""
    expected = {key: value for key, value in expected.items() if key != "description" or annotation is not Leaf}
    assert field_schema(annotation) == expected


DEFAULTS = {
    "scalar": (str, "1m", "1m"),
    "false": (bool, False, False),
    "zero": (int, 0, 0),
    "enum": (Colour, Colour.BLUE, "Blue"),
    "list": (tuple[str, ...], ("a",), ["a"]),
    "struct with a required field": (Leaf, Leaf("oak"), {"name": "oak", "size": 3}),
}


@pytest.mark.parametrize(("annotation", "default", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_a_default_is_written_as_on_the_wire(annotation: Any, default: Any, expected: Any) -> None:
    """A default appears in the schema in its wire form, and its field is not required."""
    schema = field_schema(annotation, default)
    assert schema["default"] == expected
    assert type(schema["default"]) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(str | None, None), (tuple[str, ...], ()), (dict[str, str], msgspec.field(default_factory=dict))],
    ids=["none", "empty list", "empty map"],
)
def test_an_empty_default_is_absence(annotation: Any, default: Any) -> None:
    """None and empty collections are left to absence, so that stored objects stay small."""
    assert "default" not in field_schema(annotation, default)


class AllDefaults(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Has nothing but defaults."""

    how_long: Annotated[str, doc("How long.")] = "1m"


def test_a_struct_of_defaults_is_an_empty_object() -> None:
    """A struct that equals its own defaults is {}, which the API server fills in from the nested ones."""
    schema = field_schema(AllDefaults, AllDefaults())
    assert schema["default"] == {}
    assert schema["properties"]["howLong"]["default"] == "1m"


@rules(Rule("true", "base"))
class Base(Struct, frozen=True):
    """A base."""

    a: Annotated[str | None, doc("A.")] = None


@rules(exactly_one_of("a", "b"))
class Choice(Base, frozen=True):
    """One of two."""

    b: Annotated[str | None, doc("B.")] = None


def test_rules_of_a_struct_add_to_its_bases() -> None:
    """A struct has its base's rules and its own, the base none of its heirs'."""
    schema = schema_of(Choice)
    assert schema["description"] == "One of two."
    assert schema["x-kubernetes-validations"] == [
        {"rule": "true", "message": "base"},
        {"rule": "[has(self.a), has(self.b)].exists_one(set, set)", "message": "set exactly one of a, b"},
    ]
    assert len(schema_of(Base)["x-kubernetes-validations"]) == 1


class Recursive(Struct, frozen=True):
    """Contains itself."""

    children: Annotated[tuple[Recursive, ...], doc("More of it.")] = ()


class Undocumented(Struct, frozen=True):
    """Has a field without a description."""

    leaves: Annotated[tuple[UndocumentedLeaf, ...], doc("Leaves.")]


class UndocumentedLeaf(Struct, frozen=True):
    """Has a limit and no description."""

    bare_name: Annotated[str, Meta(max_length=3)]


class Naive(Struct, frozen=True):
    """Holds a time of no time zone."""

    when: Annotated[datetime, Meta(tz=False), doc("When.")]


class ArrayLike(Struct, frozen=True, array_like=True):
    """Goes over the wire as an array."""

    x: Annotated[int, doc("X.")]


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        (Recursive, "Recursive.children[]: Recursive contains itself"),
        (Undocumented, "Undocumented.leaves[].bare_name: the field has no description"),
        (Naive, "Naive.when: a date-time in a CRD has a time zone"),
        (ArrayLike, "ArrayLike: ArrayLike is encoded as an array"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_struct_without_a_form_is_refused(struct: type[Struct], message: str) -> None:
    """What a CRD can't express raises an error that says where it stands."""
    with pytest.raises(SchemaError) as caught:
        schema_of(struct)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (bytes, "Holder.field: Bytes has no form in a CRD"),
        (frozenset[str], "Holder.field: FrozenSet has no form in a CRD"),
        (tuple[bytes, ...], "Holder.field[]: Bytes has no form in a CRD"),
        (dict[str, bytes], "Holder.field{}: Bytes has no form in a CRD"),
        (dict[int, str], "Holder.field: the keys of a map are strings"),
        (int | bool, "Holder.field: a union in a CRD is int | str"),
        (Literal["a", 1], "Holder.field: an enum is of strings or of integers"),
    ],
    ids=str,
)
def test_a_type_without_a_form_is_refused(annotation: Any, message: str) -> None:
    """A field of an unsupported type raises an error that names the path and the type."""
    with pytest.raises(SchemaError) as caught:
        field_schema(annotation)
    assert message in str(caught.value)
