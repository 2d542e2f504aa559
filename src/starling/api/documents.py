"""Kubernetes objects as plain documents: what installation, enrolment and deployments are written in."""

from typing import Any, Final

import msgspec

__all__ = ["PLATFORM_NAMESPACE", "Document", "document", "rule", "separate"]

PLATFORM_NAMESPACE: Final = "starling-system"

_LABELS: Final = {"app.kubernetes.io/name": "starling"}

Document = dict[str, Any]


def separate(documents: list[Document]) -> list[Document]:
    """Copies in which no two places share a list or map, which YAML would print as an anchor and aliases."""
    copied: list[Document] = msgspec.json.decode(msgspec.json.encode(documents))
    return copied


def rule(group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> Document:
    """A rule of a role; with names it is about these objects alone."""
    only = {"resourceNames": names} if names else {}
    return {"apiGroups": [group], "resources": resources, **only, "verbs": verbs}


def document(
    api_version: str, kind: str, name: str, *, namespace: str = PLATFORM_NAMESPACE, namespaced: bool = True, **body: Any
) -> Document:
    """An object that is labelled as a part of Starling."""
    metadata: Document = {"name": name, "labels": dict(_LABELS)}
    if namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
