"""What a hub must hold before Starling can work there: kinds, namespace, the controller's account, roles.

Rights follow from the kinds there are. The controller reads its own kinds and writes their status; it may not change
anyone's spec. It reads no Secrets yet: nothing fetches a Source, and whoever makes that work says how narrow it is.
"""

from typing import Any

import msgspec

from starling.api.crds import KINDS, crds
from starling.api.declaration import Declaration

__all__ = ["CONTROLLER", "PLATFORM_NAMESPACE", "installation"]

PLATFORM_NAMESPACE = "starling-system"
CONTROLLER = "starling-controller"

_LABELS = {"app.kubernetes.io/name": "starling"}
_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]

Document = dict[str, Any]


def installation() -> list[Document]:
    """Everything to apply to a hub, in an order that works."""
    documents = [
        _document("v1", "Namespace", PLATFORM_NAMESPACE, namespaced=False),
        *crds(),
        *_user_roles(),
        *_controller_account(),
    ]
    # Copied so that no two places share a list or map, which YAML would print as an anchor and aliases.
    copied: list[Document] = msgspec.json.decode(msgspec.json.encode(documents))
    return copied


def _controller_account() -> list[Document]:
    cluster_rules = [
        _rule(Declaration.group, _plurals(), _READ),
        _rule(Declaration.group, _plurals("/status"), ["patch"]),
        _rule("events.k8s.io", ["events"], ["create", "patch"]),
    ]
    # Leader election; Leases elsewhere are none of its business.
    own_rules = [_rule("coordination.k8s.io", ["leases"], ["create", "get", "patch", "update"])]
    return [
        _document("v1", "ServiceAccount", CONTROLLER),
        _document(f"{_RBAC}/v1", "ClusterRole", CONTROLLER, namespaced=False, rules=cluster_rules),
        _document(f"{_RBAC}/v1", "ClusterRoleBinding", CONTROLLER, namespaced=False, **_bound("ClusterRole")),
        _document(f"{_RBAC}/v1", "Role", CONTROLLER, rules=own_rules),
        _document(f"{_RBAC}/v1", "RoleBinding", CONTROLLER, **_bound("Role")),
    ]


def _user_roles() -> list[Document]:
    """Roles that Kubernetes' own view, edit and admin take in, so that their holders may use our kinds too."""
    return [
        _user_role("starling-view", ("view", "edit", "admin"), _READ),
        _user_role("starling-edit", ("edit", "admin"), _WRITE),
    ]


def _user_role(name: str, into: tuple[str, ...], verbs: list[str]) -> Document:
    role = _document(
        f"{_RBAC}/v1",
        "ClusterRole",
        name,
        namespaced=False,
        rules=[_rule(Declaration.group, _plurals(), verbs)],
    )
    role["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{other}": "true" for other in into}
    return role


def _plurals(subresource: str = "") -> list[str]:
    return [resource.declaration.plural + subresource for resource in KINDS]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Document:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _bound(role: str) -> Document:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": CONTROLLER},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": PLATFORM_NAMESPACE}],
    }


def _document(api_version: str, kind: str, name: str, *, namespaced: bool = True, **body: Any) -> Document:
    metadata: Document = {"name": name, "labels": dict(_LABELS)}
    if namespaced:
        metadata["namespace"] = PLATFORM_NAMESPACE
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
