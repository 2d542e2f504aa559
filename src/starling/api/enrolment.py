"""What enrolment makes: documents for the hub and for the cluster that will dial in to it, and what revoking deletes.

The account that a cluster gets can do what the cluster needs and nothing else (design §8.2): read its own
ProxyAssemblage and its one Secret with credentials, tell how both they and itself stand, renew its Lease and its token.
It can't read its Cluster, nor change labels there: those that it asks for go to status, and the hub decides.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from starling.api.crds import crds
from starling.api.declaration import Declaration
from starling.api.deployment import deployment
from starling.api.documents import PLATFORM_NAMESPACE, Document, document, rule, separate
from starling.api.v1alpha1 import Cluster, Upstream
from starling.errors import InputError
from starling.kube import Ref, Resource

__all__ = [
    "AGENT",
    "account_name",
    "agent_account",
    "agent_installation",
    "credentials_name",
    "downstream_documents",
    "hub_documents",
    "kubeconfig",
    "kubeconfig_name",
    "owned_by",
    "revoked",
]

AGENT: Final = "starling-agent"
HEARTBEAT: Final = 60
LONGEST_NAME: Final = 63  # it stands in a label

_RBAC: Final = "rbac.authorization.k8s.io"
_COORDINATION: Final = "coordination.k8s.io"
_READ: Final = ["get", "list", "watch"]


def account_name(cluster: str) -> str:
    """What a cluster's account, role, binding and Lease on the hub are called."""
    return f"starling-cluster-{cluster}"


def credentials_name(cluster: str) -> str:
    """The Secret on the hub that holds the credentials which a cluster may use."""
    return f"{account_name(cluster)}-credentials"


def kubeconfig_name(cluster: str) -> str:
    """The Secret on the hub that says how it connects to a cluster; others call theirs <cluster>-kubeconfig."""
    return f"{account_name(cluster)}-kubeconfig"


def hub_documents(
    cluster: str, namespace: str, labels: Mapping[str, str], allowed_labels: Sequence[str]
) -> list[Document]:
    """The Cluster, then all that it needs to dial in; `labels` are its own, `allowed_labels` it may choose itself."""
    if len(cluster) > LONGEST_NAME:
        raise InputError(f"cluster name {cluster!r} is longer than {LONGEST_NAME} characters")
    name = account_name(cluster)
    lease = document(
        f"{_COORDINATION}/v1", "Lease", name, namespace=namespace, spec={"leaseDurationSeconds": HEARTBEAT}
    )
    lease["metadata"]["labels"]["starling.dev/cluster"] = cluster
    return separate(
        [
            _cluster(cluster, namespace, labels, allowed_labels),
            document("v1", "ServiceAccount", name, namespace=namespace),
            document(f"{_RBAC}/v1", "Role", name, namespace=namespace, rules=_rules(cluster)),
            document(
                f"{_RBAC}/v1",
                "RoleBinding",
                name,
                namespace=namespace,
                roleRef={"apiGroup": _RBAC, "kind": "Role", "name": name},
                subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            ),
            lease,
        ]
    )


def owned_by(documents: Sequence[Document], cluster: str, uid: str) -> list[Document]:
    """The same, to go when the Cluster goes; for what `hub_documents` gives after the Cluster, once that has a uid."""
    owner = {"apiVersion": _version(Cluster.declaration), "kind": "Cluster", "name": cluster, "uid": uid}
    owned = [{**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in documents]
    return separate(owned)


def revoked(cluster: str, namespace: str) -> list[Ref]:
    """What to delete so that a cluster can't dial in any more, the account first; the Cluster itself stays."""
    kinds = (
        ("", "ServiceAccount", "serviceaccounts"),
        (_RBAC, "RoleBinding", "rolebindings"),
        (_RBAC, "Role", "roles"),
        (_COORDINATION, "Lease", "leases"),
    )
    return [
        Resource(group, "v1", kind, plural, namespaced=True).ref(account_name(cluster), namespace)
        for group, kind, plural in kinds
    ]


def kubeconfig(server: str, ca_data: str, token: str, namespace: str, cluster: str) -> Document:
    """How the cluster reaches the hub; `ca_data` is in base64, and empty where public CAs vouch for the hub."""
    name = account_name(cluster)
    authority = {"certificate-authority-data": ca_data} if ca_data else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": {"server": server, **authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": name, "namespace": namespace}}],
        "current-context": "hub",
    }


def downstream_documents(
    cluster: str, namespace: str, kubeconfig: Mapping[str, Any], labels: Mapping[str, str]
) -> list[Document]:
    """What the cluster must hold to dial in, besides the agent; `labels` are those it asks for."""
    secret = document(
        "v1",
        "Secret",
        "starling-upstream",
        namespace=namespace,
        type="Opaque",
        data={"kubeconfig": base64.b64encode(msgspec.json.encode(kubeconfig)).decode()},
    )
    secret["metadata"]["labels"]["starling.dev/kubeconfig"] = "upstream"
    upstream = document(
        _version(Upstream.declaration),
        "Upstream",
        "hub",
        namespace=namespace,
        spec={
            "kubeconfigSecret": {"name": "starling-upstream"},
            "cluster": {"name": cluster, "labels": dict(labels)},
        },
    )
    own = [] if namespace == PLATFORM_NAMESPACE else [document("v1", "Namespace", namespace, namespaced=False)]
    return separate([*own, secret, upstream])


def agent_installation(image: str) -> list[Document]:
    """Everything that a cluster must hold for the agent to work there, in an order that works."""
    return separate(
        [
            document("v1", "Namespace", PLATFORM_NAMESPACE, namespaced=False),
            *crds(),
            *agent_account(),
            deployment(AGENT, image, "agent"),
        ]
    )


def agent_account() -> list[Document]:
    """The account that the agent has, and what it may do, be that on a cluster or on the hub.

    It applies whatever git says, kinds that nobody has thought of yet among them; outside the platform namespace it
    acts as the account of the unit's own namespace.
    """
    return [
        document("v1", "ServiceAccount", AGENT),
        document(
            f"{_RBAC}/v1",
            "ClusterRoleBinding",
            AGENT,
            namespaced=False,
            roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            subjects=[{"kind": "ServiceAccount", "name": AGENT, "namespace": PLATFORM_NAMESPACE}],
        ),
    ]


def _cluster(name: str, namespace: str, labels: Mapping[str, str], allowed: Sequence[str]) -> Document:
    return {
        "apiVersion": _version(Cluster.declaration),
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"pull": {"allowedLabels": sorted(set(allowed))}},
    }


def _rules(cluster: str) -> list[Document]:
    ours, name = Declaration.group, account_name(cluster)
    return [
        # Listing and watching by resourceNames works for those who select metadata.name, which an agent does.
        rule(ours, ["proxyassemblages"], _READ, [cluster]),
        rule("", ["secrets"], _READ, [credentials_name(cluster)]),
        rule(ours, ["proxyassemblages/status", "clusters/status"], ["patch"], [cluster]),
        rule(_COORDINATION, ["leases"], ["get", "patch", "update"], [name]),
        rule("", ["serviceaccounts/token"], ["create"], [name]),
    ]


def _version(declared: Declaration) -> str:
    return f"{declared.group}/{declared.version}"
