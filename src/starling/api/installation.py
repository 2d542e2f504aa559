"""What a hub must hold before Starling can work there: kinds, namespace, accounts of controller and agent, roles.

Rights follow from the kinds there are. The controller reads its own kinds and writes their status. Of specs it writes
only those of ProxyAssemblages and of SyncGroups' Syncs, which are its own; of Clusters, Modules and SyncGroups it
patches metadata: finalizers, and labels that a cluster may choose. It reads Secrets wherever Sources and Clusters are
(git credentials by name; kubeconfigs it watches, by a label, which no role can be narrowed to), and writes the one per
cluster that holds copies of what this cluster needs. The agent is what it is on clusters.
"""

from starling.api.crds import KINDS, crds
from starling.api.declaration import Declaration
from starling.api.deployment import deployment
from starling.api.documents import PLATFORM_NAMESPACE, Document, document, rule, separate
from starling.api.enrolment import AGENT, agent_account

__all__ = ["CONTROLLER", "installation"]

CONTROLLER = "starling-controller"
WRITTEN = ("sources", "clusters", "modules", "syncgroups", "proxyassemblages")
"""The kinds whose status a hub writes; that of the others is written on clusters."""

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]


def installation(image: str = "", instance: str = "fleet") -> list[Document]:
    """Everything to apply to a hub, in an order that works; with an image, controller and agent run there, too."""
    running = [
        deployment(CONTROLLER, image, "controller", "--instance", instance),
        # Of another name, so that what it syncs to a cluster isn't taken for what the agent there may take over.
        deployment(AGENT, image, "agent", "--instance", f"{instance}-hub"),
    ]
    documents = [
        document("v1", "Namespace", PLATFORM_NAMESPACE, namespaced=False),
        *crds(),
        *_user_roles(),
        *_controller_account(),
        *agent_account(),
        *(running if image else []),
    ]
    return separate(documents)


def _controller_account() -> list[Document]:
    cluster_rules = [
        rule(Declaration.group, _plurals(), _READ),
        rule(Declaration.group, [f"{each}/status" for each in WRITTEN], ["patch"]),
        rule(Declaration.group, ["proxyassemblages"], ["create", "delete", "patch"]),
        rule(Declaration.group, ["clusters", "modules", "syncgroups"], ["patch"]),
        rule(Declaration.group, ["syncs"], ["create", "delete", "patch"]),  # those of SyncGroups
        rule("apps", ["controllerrevisions"], [*_READ, "create", "delete"]),
        rule("", ["secrets"], [*_READ, "create", "patch"]),
        rule("", ["namespaces"], ["get"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"]),
        rule("coordination.k8s.io", ["leases"], _READ),  # the clusters' heartbeats
        rule("events.k8s.io", ["events"], ["create", "patch"]),
    ]
    # Leader election; elsewhere it only reads Leases.
    own_rules = [rule("coordination.k8s.io", ["leases"], ["create", "get", "patch", "update"])]
    return [
        document("v1", "ServiceAccount", CONTROLLER),
        document(f"{_RBAC}/v1", "ClusterRole", CONTROLLER, namespaced=False, rules=cluster_rules),
        document(f"{_RBAC}/v1", "ClusterRoleBinding", CONTROLLER, namespaced=False, **_bound("ClusterRole")),
        document(f"{_RBAC}/v1", "Role", CONTROLLER, rules=own_rules),
        document(f"{_RBAC}/v1", "RoleBinding", CONTROLLER, **_bound("Role")),
    ]


def _user_roles() -> list[Document]:
    """Roles that Kubernetes' own view, edit and admin take in, so that their holders may use our kinds too."""
    return [
        _user_role("starling-view", ("view", "edit", "admin"), _READ),
        _user_role("starling-edit", ("edit", "admin"), _WRITE),
    ]


def _user_role(name: str, into: tuple[str, ...], verbs: list[str]) -> Document:
    role = document(
        f"{_RBAC}/v1",
        "ClusterRole",
        name,
        namespaced=False,
        rules=[rule(Declaration.group, _plurals(), verbs)],
    )
    role["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{other}": "true" for other in into}
    return role


def _plurals(subresource: str = "") -> list[str]:
    return [resource.declaration.plural + subresource for resource in KINDS]


def _bound(role: str) -> Document:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": CONTROLLER},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": PLATFORM_NAMESPACE}],
    }
