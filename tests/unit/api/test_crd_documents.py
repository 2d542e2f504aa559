"""Every kind's CRD says all that kubectl and the API server need."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from starling.api import KINDS, Resource, RolloutPolicy, Source
from starling.api.crds import crd
from starling.api.v1alpha1 import SourceStatus

kinds = pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.declaration.kind)


@kinds
def test_a_kind_is_named_once_and_for_all(resource: type[Resource]) -> None:
    """A CRD is namespaced, in the category, with the names that its kind declares."""
    document = crd(resource)
    spec, declared = document["spec"], resource.declaration
    assert document["metadata"]["name"] == f"{declared.plural}.starling.dev"
    assert spec["scope"] == "Namespaced"
    assert spec["names"] == {
        "kind": resource.__name__,
        "listKind": f"{resource.__name__}List",
        "plural": declared.plural,
        "singular": resource.__name__.lower(),
        "shortNames": list(declared.short_names),
        "categories": ["starling"],
    }


def test_no_two_kinds_share_a_name() -> None:
    """Names and short names are unique among our kinds."""
    names = [
        name
        for each in KINDS
        for name in (each.declaration.singular, each.declaration.plural, *each.declaration.short_names)
    ]
    assert len(names) == len(set(names))


@kinds
def test_every_kind_has_status_conditions_and_columns(resource: type[Resource]) -> None:
    """A kind has a status subresource, conditions keyed by type, and ends its columns in Ready, Message, Age."""
    version = crd(resource)["spec"]["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert version["subresources"] == {"status": {}}
    assert status["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["properties"]["observedGeneration"]["type"] == "integer"
    assert [column["name"] for column in version["additionalPrinterColumns"]][-3:] == ["Ready", "Message", "Age"]


def test_what_no_controller_has_seen_is_not_current() -> None:
    """A new Source is for kstatus InProgress until its controller has looked; a policy is only read, and Current."""
    assert msgspec.json.encode(SourceStatus()) == b"{}"
    assert _observed(Source) == -1
    assert _observed(RolloutPolicy) is None


def _observed(resource: type[Resource]) -> int | None:
    schema = crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    default: int | None = schema["properties"]["observedGeneration"].get("default")
    return default


@kinds
def test_every_description_is_one_line(resource: type[Resource]) -> None:
    """Every field has a description of one line that ends as a sentence does."""
    schema = crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    described = [(path, each["description"]) for path, each in fields(schema, resource.__name__)]
    assert len(described) > 10
    assert [path for path, text in described if "\n" in text or not text.endswith(".")] == []


@kinds
def test_spec_comes_first_and_is_required(resource: type[Resource]) -> None:
    """An object without a spec is refused; one without a status is new."""
    schema = crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(schema["properties"]) == ["spec", "status"]
    assert schema["required"] == ["spec"]


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below a schema, with its path."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from fields(each, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from fields(schema[inner], f"{path}[]")
