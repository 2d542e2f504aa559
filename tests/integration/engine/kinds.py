"""A kind of a test's own, which nobody serves until someone brings it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from starling.kube import Client, NotFound, Resource
from tests.integration.engine.edits import CRDS
from tests.integration.engine.scene import Json

__all__ = ["OwnKind", "own_kind"]


@dataclass(frozen=True)
class OwnKind:
    """Widgets of one group."""

    group: str
    scope: str = "Namespaced"

    @property
    def resource(self) -> Resource:
        """How they are addressed."""
        return Resource(self.group, "v1", "Widget", "widgets", namespaced=self.scope == "Namespaced")

    def crd(self) -> Json:
        """What defines them."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{self.group}"},
            "spec": {"group": self.group, "scope": self.scope, "names": names, "versions": [version]},
        }

    def widget(self, name: str, **metadata: object) -> Json:
        """One of them."""
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Widget",
            "metadata": {"name": name, **metadata},
            "spec": {"size": 1},
        }


@asynccontextmanager
async def own_kind(client: Client, group: str, scope: str = "Namespaced") -> AsyncIterator[OwnKind]:
    """A kind that is gone again after the block."""
    try:
        yield OwnKind(group, scope)
    finally:
        with suppress(NotFound):
            await client.delete(CRDS.ref(f"widgets.{group}"))
