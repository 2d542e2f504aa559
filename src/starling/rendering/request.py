"""What is to be rendered, and what comes of it."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starling.objects import Manifest

__all__ = ["KUBE_VERSION", "Package", "Rendered", "Request"]

KUBE_VERSION: Final = "1.36.0"
"""What charts are told that they run on if nobody says: the Kubernetes that our Helm was made for."""


class Package(enum.StrEnum):
    """How a folder becomes manifests."""

    KUSTOMIZE = "kustomize"
    HELM = "helm"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to make of a tree. Only charts look at release, values and the target; others refuse values.

    Values are merged in order as Helm merges several files, later ones winning; `settings` come after them, each as
    with Helm's --set, and stand on its command line, where others on the machine can see them. A release without a
    name is called as the chart's folder is.
    """

    path: str = "."
    package: Package | None = None
    """None: see what is there."""
    release_name: str = ""
    namespace: str = "default"
    values: Sequence[Mapping[str, Any]] = field(default=(), repr=False)  # they may hold secrets
    settings: Sequence[str] = field(default=(), repr=False)
    kube_version: str = KUBE_VERSION
    api_versions: Sequence[str] = ()
    patches: Sequence[Mapping[str, Any]] = ()
    """What is put onto the result, whatever the package: each a `patch`, and its `target`, as kustomize has them."""
    allow_remote: bool = False
    """May it fetch bases, files and charts from elsewhere, without credentials? What comes of that isn't certain, but
    kept like anything else: all clusters get what was fetched first, until someone asks for it anew."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Manifests in the order that the tool gives them, and a digest that changes when their content does."""

    manifests: tuple[Manifest, ...]
    content_digest: str
