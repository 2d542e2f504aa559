"""The kinds there are, and the CustomResourceDefinition of each."""

from typing import Any

from starling.api.declaration import Declaration
from starling.api.meta import Resource
from starling.api.schema import schema_of
from starling.api.v1alpha1 import (
    Assemblage,
    Cluster,
    Module,
    ProxyAssemblage,
    RolloutPolicy,
    Source,
    Sync,
    SyncGroup,
    Upstream,
)

__all__ = ["KINDS", "crd", "crds"]

KINDS: tuple[type[Resource], ...] = (
    Source,
    Cluster,
    Module,
    SyncGroup,
    RolloutPolicy,
    Sync,
    ProxyAssemblage,
    Assemblage,
    Upstream,
)
"""Every kind of this version; CRDs, roles and the field reference all follow from it."""

# The API server describes and validates these itself, for every kind.
_OF_EVERY_OBJECT = frozenset({"apiVersion", "metadata"})


def crds() -> list[dict[str, Any]]:
    """The CRD of every kind."""
    return [crd(resource) for resource in KINDS]


def crd(resource: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    declared = resource.declaration
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": declared.crd_name, "labels": {"app.kubernetes.io/name": "starling"}},
        "spec": {
            "group": declared.group,
            "scope": "Namespaced",
            "names": _names(declared),
            "versions": [
                {
                    "name": declared.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema_of(resource, leaving_out=_OF_EVERY_OBJECT)},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.document() for column in declared.columns],
                }
            ],
        },
    }


def _names(declared: Declaration) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": declared.kind,
        "listKind": f"{declared.kind}List",
        "plural": declared.plural,
        "singular": declared.singular,
        "categories": [declared.category],
    }
    return names | ({"shortNames": list(declared.short_names)} if declared.short_names else {})
