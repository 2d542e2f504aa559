"""In which order objects are applied: by wave, then by tier of kinds, then by key. Pruning goes the other way."""

import enum
from typing import Final

from starling.objects import ObjectKey

__all__ = ["CRD", "NAMESPACE", "Tier", "sort_key", "tier"]

CRD: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE: Final = ("", "Namespace")


class Tier(enum.IntEnum):
    """Kinds that may be applied at once; a tier starts when the one before it is done.

    Helm and Argo CD sort some thirty kinds into a line, Flux has three stages and a line of its own. A tier each would
    make most runs sequential, so what counts is only where one kind really needs another to be there:

    - Namespaces before what is in them, CRDs before their objects.
    - Quotas, limits and network policies before what they are to hold down. ServiceAccounts before Secrets: the token
      controller deletes a token of an account that isn't there. Roles before bindings, which are refused without
      them. PersistentVolumes and StorageClasses before claims: one that finds no volume has another provisioned.
      Priority and runtime classes before pods: admission looks them up.
    - ConfigMaps, Secrets, claims, Services and bindings before the pods that start with them.
    - What extends the API for other objects (APIServices, and custom classes such as GatewayClass, which Flux applies
      in a stage of their own) after the workloads that serve it, as in Argo CD, and before other custom objects.
    - Everything else: custom objects, whose operator may be a workload of the set; Ingresses; autoscalers, which would
      report a missing target.
    - Whatever admits or refuses others last, as in Flux: a webhook whose server isn't up would refuse its own set.
    """

    NAMESPACE = 0
    DEFINITION = 1
    FOUNDATION = 2
    CONFIGURATION = 3
    WORKLOAD = 4
    EXTENSION = 5
    OTHER = 6
    ADMISSION = 7


# By group as well: Knative's Service is a custom object, not a Service.
_KINDS: Final[dict[Tier, dict[str, str]]] = {
    Tier.NAMESPACE: {"": "Namespace"},
    Tier.DEFINITION: {"apiextensions.k8s.io": "CustomResourceDefinition"},
    Tier.FOUNDATION: {
        "": "ServiceAccount ResourceQuota LimitRange PersistentVolume",
        "networking.k8s.io": "NetworkPolicy IngressClass",
        "policy": "PodDisruptionBudget PodSecurityPolicy",
        "rbac.authorization.k8s.io": "Role ClusterRole",
        "scheduling.k8s.io": "PriorityClass",
        "node.k8s.io": "RuntimeClass",
        "storage.k8s.io": "StorageClass VolumeAttributesClass CSIDriver",
        "resource.k8s.io": "DeviceClass",
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    },
    Tier.CONFIGURATION: {
        "": "ConfigMap Secret PersistentVolumeClaim Service Endpoints",
        "discovery.k8s.io": "EndpointSlice",
        "rbac.authorization.k8s.io": "RoleBinding ClusterRoleBinding",
        "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    },
    Tier.WORKLOAD: {
        "": "Pod PodTemplate ReplicationController",
        "apps": "Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision",
        "batch": "Job CronJob",
    },
    Tier.EXTENSION: {"apiregistration.k8s.io": "APIService"},
    Tier.ADMISSION: {
        "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    },
}
_TIERS: Final = {
    (group, kind): tier for tier, groups in _KINDS.items() for group, kinds in groups.items() for kind in kinds.split()
}


def tier(group: str, kind: str) -> Tier:
    """The tier of a kind."""
    known = _TIERS.get((group, kind))
    if known is not None:
        return known
    return Tier.EXTENSION if kind.endswith("Class") else Tier.OTHER


def sort_key(wave: int, key: ObjectKey) -> tuple[int, Tier, ObjectKey]:
    """What sorting by puts objects into the order in which they are applied."""
    return wave, tier(key.group, key.kind), key
