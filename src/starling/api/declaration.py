"""The words with which kinds and their fields are declared, next to the fields themselves.

Everything here ends up in the CRD: `doc` in `kubectl explain`, `checked` and `rules` as CEL rules that the API
server holds objects to, `keyed_by` and its siblings in how server-side apply merges, `kind` as names and columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from msgspec import Meta, Struct

from starling import kube

__all__ = [
    "ATOMIC_MAP",
    "OPAQUE",
    "SET",
    "Column",
    "Declaration",
    "Rule",
    "checked",
    "doc",
    "exactly_one_of",
    "keyed_by",
    "kind",
    "matching",
    "rules",
    "rules_of",
]

RULES_ATTRIBUTE = "__validation_rules__"

Reason = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueDuplicate"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL expression over `self` that must hold, and what the API server says when it doesn't."""

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None
    reason: Reason | None = None

    def document(self) -> dict[str, str]:
        """The rule as an entry of x-kubernetes-validations."""
        entries = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "fieldPath": self.field_path,
            "reason": self.reason,
        }
        return {key: value for key, value in entries.items() if value is not None}


def exactly_one_of(*fields: str) -> Rule:
    """A rule for a struct: one of these optional fields is set, and no other of them."""
    present = ", ".join(f"has(self.{field})" for field in fields)
    return Rule(f"[{present}].exists_one(set, set)", f"set exactly one of {', '.join(fields)}")


StructType = TypeVar("StructType", bound=type[Struct])


def rules(*declared: Rule) -> Callable[[StructType], StructType]:
    """Declare rules over a struct's fields, in addition to those of its bases."""

    def declare(struct: StructType) -> StructType:
        setattr(struct, RULES_ATTRIBUTE, (*rules_of(struct), *declared))
        return struct

    return declare


def rules_of(struct: type[Struct]) -> tuple[Rule, ...]:
    """The rules declared on a struct."""
    declared: tuple[Rule, ...] = getattr(struct, RULES_ATTRIBUTE, ())
    return declared


def doc(description: str) -> Meta:
    """A field's one-line description, as `kubectl explain` prints it."""
    return Meta(description=description)


def checked(*declared: Rule) -> Meta:
    """Rules over a field's value."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [rule.document() for rule in declared]})


def matching(expression: str, message: str, *, unless: str = "") -> Meta:
    """A rule that text matches a regular expression, told as a sentence; `unless` is what must not hold besides."""
    also = f" && !({unless})" if unless else ""
    return checked(Rule(f"self.matches(r'{expression}'){also}", message))


def keyed_by(*keys: str) -> Meta:
    """A list whose entries these fields tell apart: no two alike, and server-side apply merges by them."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


SET = Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
"""A list of scalars, no two alike, that several writers may add to."""

ATOMIC_MAP = Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"})
"""An object or map that is replaced as a whole."""


OPAQUE = Meta(extra_json_schema={"x-starling-opaque": True})
"""A list that Starling itself writes, from what was checked where people wrote it: the API server only stores it.

A schema for twenty such entries is most of what a write costs it (docs/decisions/0014), and what another version of
Starling put there stays as it is.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; with priority 1 only of `kubectl get -o wide`."""

    name: str
    path: str
    description: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    priority: int = 0

    def document(self) -> dict[str, Any]:
        """The column as an entry of additionalPrinterColumns."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "jsonPath": self.path,
            "description": self.description,
        }
        return entry | ({"priority": self.priority} if self.priority else {})


def _of_ready(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


COLUMNS_OF_EVERY_KIND = (
    Column("Ready", _of_ready("status"), "Whether it is as it should be."),
    Column("Message", _of_ready("message"), "Why it is or isn't ready.", priority=1),
    Column("Age", ".metadata.creationTimestamp", "How long ago it was created.", type="date"),
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """How a kind is called and listed."""

    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()

    group: ClassVar[str] = "starling.dev"
    version: ClassVar[str] = "v1alpha1"
    category: ClassVar[str] = "starling"

    @property
    def singular(self) -> str:
        """The name `kubectl get` takes for one object."""
        return self.kind.lower()

    @property
    def resource(self) -> kube.Resource:
        """How an API server is asked for it, without asking it first how."""
        return kube.Resource(
            self.group, self.version, self.kind, self.plural, namespaced=True, subresources=("status",)
        )

    @property
    def crd_name(self) -> str:
        """The name of the kind's CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


class _Declarable(Protocol):
    declaration: ClassVar[Declaration]


Kind = TypeVar("Kind", bound=type[_Declarable])


def kind(*, plural: str, short_names: tuple[str, ...] = (), columns: tuple[Column, ...] = ()) -> Callable[[Kind], Kind]:
    """Declare a Resource as a kind named like its class; Ready, Message and Age follow its own columns."""

    def declare(resource: Kind) -> Kind:
        resource.declaration = Declaration(resource.__name__, plural, short_names, (*columns, *COLUMNS_OF_EVERY_KIND))
        return resource

    return declare
