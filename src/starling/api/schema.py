"""Structs into structural schemas: what `openAPIV3Schema` of a CRD wants, fully inlined.

Beyond JSON Schema this knows what the API server asks of a CRD: no references, hence no recursion; integers with a
format; lists that say how they merge; no null: a field that may be None is one that may be absent.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, inspect

from starling.api.declaration import rules_of
from starling.errors import StarlingError

__all__ = ["Schema", "SchemaError", "schema_of"]

Schema = dict[str, Any]

_VALIDATIONS = "x-kubernetes-validations"
_OPAQUE = "x-starling-opaque"
_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


class SchemaError(StarlingError):
    """A type can't be expressed in a CRD, or a field has no description."""

    reason = "InvalidType"


def schema_of(struct: type[Struct], *, leaving_out: frozenset[str] = frozenset()) -> Schema:
    """The structural schema of a struct, with its docstring as description."""
    described = inspect.type_info(struct)
    if not isinstance(described, inspect.StructType):
        raise SchemaError(f"{struct.__name__} is no plain struct")
    fields = tuple(each for each in described.fields if each.encode_name not in leaving_out)
    return _Generator(struct.__name__, ()).struct(msgspec.structs.replace(described, fields=fields))


class _Generator:
    """Generates the schema at one path, knowing the structs around it."""

    def __init__(self, path: str, around: tuple[type, ...]) -> None:
        self.path = path
        self.around = around

    def at(self, step: str) -> "_Generator":
        return _Generator(self.path + step, self.around)

    def refuse(self, why: str) -> SchemaError:
        return SchemaError(f"{self.path}: {why}")

    def any(self, described: inspect.Type) -> Schema:
        """The schema of any type."""
        if isinstance(described, inspect.Metadata):
            return _marked(_merged(self.any(described.type), described.extra_json_schema or {}))
        generate = _GENERATORS.get(type(described))
        if generate is None:
            name = type(described).__name__.removesuffix("Type")
            raise self.refuse(f"{name} has no form in a CRD")
        return generate(self, described)

    def struct(self, described: inspect.StructType) -> Schema:
        cls = described.cls
        if cls in self.around:
            raise self.refuse(f"{cls.__name__} contains itself; a CRD can't express recursion")
        if described.array_like:
            raise self.refuse(f"{cls.__name__} is encoded as an array")
        inner = _Generator(self.path, (*self.around, cls))
        properties = {each.encode_name: inner.at(f".{each.encode_name}").field(each) for each in described.fields}
        schema: Schema = {"type": "object"}
        if cls.__doc__:
            schema["description"] = " ".join(cls.__doc__.split())
        if properties:
            schema["properties"] = properties
        if required := [each.encode_name for each in described.fields if each.required]:
            schema["required"] = required
        if declared := rules_of(cls):
            schema[_VALIDATIONS] = [rule.document() for rule in declared]
        return schema

    def field(self, described: inspect.Field) -> Schema:
        metadata = described.type
        if not isinstance(metadata, inspect.Metadata) or not (metadata.extra_json_schema or {}).get("description"):
            raise self.refuse("the field has no description; give it a doc(…)")
        schema = self.any(metadata)
        if described.required:
            return schema
        default = self.default(described)
        return schema if default is None else schema | {"default": default}

    def default(self, described: inspect.Field) -> Any:
        """The default to write down; None where absence says the same: None itself and empty lists and maps."""
        value = described.default
        if described.default_factory is not msgspec.NODEFAULT:
            value = described.default_factory()
        if isinstance(value, msgspec.Raw):
            return None
        built = msgspec.json.decode(msgspec.json.encode(value))
        if isinstance(value, Struct):
            return built  # what equals its own defaults is {}, which the API server fills in
        return None if built in ([], {}, None) else built

    def integer(self, described: inspect.IntType) -> Schema:
        lowest = described.ge if described.gt is None else described.gt + 1
        highest = described.le if described.lt is None else described.lt - 1
        return {"type": "integer", "format": "int64"} | _given(
            minimum=lowest, maximum=highest, multipleOf=described.multiple_of
        )

    def number(self, described: inspect.FloatType) -> Schema:
        return {"type": "number"} | _given(
            minimum=described.ge if described.gt is None else described.gt,
            exclusiveMinimum=None if described.gt is None else True,
            maximum=described.le if described.lt is None else described.lt,
            exclusiveMaximum=None if described.lt is None else True,
            multipleOf=described.multiple_of,
        )

    def string(self, described: inspect.StrType) -> Schema:
        return {"type": "string"} | _given(
            minLength=described.min_length, maxLength=described.max_length, pattern=described.pattern
        )

    def moment(self, described: inspect.DateTimeType) -> Schema:
        if described.tz is False:
            raise self.refuse("a date-time in a CRD has a time zone")
        return {"type": "string", "format": "date-time"}

    def literal(self, described: inspect.LiteralType) -> Schema:
        return self.enumeration(list(described.values))

    def enum(self, described: inspect.EnumType) -> Schema:
        return self.enumeration([member.value for member in described.cls])

    def enumeration(self, values: list[Any]) -> Schema:
        kinds = {type(value) for value in values}
        if kinds == {str}:
            return {"type": "string", "enum": values}
        if kinds == {int}:
            return {"type": "integer", "format": "int64", "enum": values}
        raise self.refuse("an enum is of strings or of integers")

    def items(self, described: inspect.ListType | inspect.VarTupleType) -> Schema:
        return {
            "type": "array",
            "items": self.at("[]").any(described.item_type),
            "x-kubernetes-list-type": "atomic",
        } | _given(minItems=described.min_length, maxItems=described.max_length)

    def map(self, described: inspect.DictType) -> Schema:
        if not isinstance(_bare(described.key_type), inspect.StrType):
            raise self.refuse("the keys of a map are strings")
        if isinstance(described.value_type, inspect.AnyType):
            return {"type": "object"} | _ANYTHING
        values = self.at("{}").any(described.value_type)
        return {"type": "object", "additionalProperties": values} | _given(
            minProperties=described.min_length, maxProperties=described.max_length
        )

    def union(self, described: inspect.UnionType) -> Schema:
        members = [member for member in described.types if not isinstance(member, inspect.NoneType)]
        if len(members) == 1:
            return self.any(members[0])
        if {type(_bare(member)) for member in members} != {inspect.IntType, inspect.StrType}:
            raise self.refuse("a union in a CRD is int | str, or a type | None")
        merged: Schema = {}
        for member in members:
            merged = _merged(merged, self.any(member))
        # The type and format are of one member only; the limits apply to values of their own type.
        limits = {key: value for key, value in merged.items() if key not in {"type", "format"}}
        return {"x-kubernetes-int-or-string": True} | limits


_GENERATORS: Mapping[type[inspect.Type], Callable[[_Generator, Any], Schema]] = {
    inspect.AnyType: lambda _, __: dict(_ANYTHING),
    inspect.RawType: lambda _, __: dict(_ANYTHING),
    inspect.BoolType: lambda _, __: {"type": "boolean"},
    inspect.IntType: _Generator.integer,
    inspect.FloatType: _Generator.number,
    inspect.StrType: _Generator.string,
    inspect.DateTimeType: _Generator.moment,
    inspect.LiteralType: _Generator.literal,
    inspect.EnumType: _Generator.enum,
    inspect.ListType: _Generator.items,
    inspect.VarTupleType: _Generator.items,
    inspect.DictType: _Generator.map,
    inspect.UnionType: _Generator.union,
    inspect.StructType: _Generator.struct,
}


def _bare(described: inspect.Type) -> inspect.Type:
    return described.type if isinstance(described, inspect.Metadata) else described


def _given(**entries: Any) -> Schema:
    return {key: value for key, value in entries.items() if value is not None}


def _merged(schema: Schema, extra: Schema) -> Schema:
    """The schema with what a field says on top; rules add up, everything else replaces."""
    both = [*schema.get(_VALIDATIONS, []), *extra.get(_VALIDATIONS, [])]
    return schema | extra | ({_VALIDATIONS: both} if both else {})


def _marked(schema: Schema) -> Schema:
    """The schema, with its items only stored if it is marked so, and without the mark."""
    if not schema.pop(_OPAQUE, False):
        return schema
    return schema | {"items": {"type": "object"} | _ANYTHING}
