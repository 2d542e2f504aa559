"""The order of kinds and waves."""

from itertools import pairwise

import pytest

from starling.engine.annotations import sync_wave
from starling.engine.order import Tier, sort_key, tier
from starling.objects import ObjectKey

RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("", "Namespace"), ("", "ServiceAccount")),
        (("apiextensions.k8s.io", "CustomResourceDefinition"), ("example.com", "Widget")),
        (("", "ServiceAccount"), ("", "Secret")),
        (("", "ResourceQuota"), ("", "ConfigMap")),
        (("", "LimitRange"), ("", "PersistentVolumeClaim")),
        ((RBAC, "ClusterRole"), (RBAC, "RoleBinding")),
        ((RBAC, "Role"), (RBAC, "RoleBinding")),
        (("", "PersistentVolume"), ("", "PersistentVolumeClaim")),
        (("storage.k8s.io", "StorageClass"), ("", "PersistentVolumeClaim")),
        (("scheduling.k8s.io", "PriorityClass"), ("apps", "Deployment")),
        (("networking.k8s.io", "NetworkPolicy"), ("", "Pod")),
        (("networking.k8s.io", "IngressClass"), ("networking.k8s.io", "Ingress")),
        (("policy", "PodDisruptionBudget"), ("apps", "StatefulSet")),
        (("", "Secret"), ("batch", "Job")),
        (("", "Service"), ("apps", "DaemonSet")),
        ((RBAC, "RoleBinding"), ("apps", "Deployment")),
        (("apps", "Deployment"), ("autoscaling", "HorizontalPodAutoscaler")),
        (("apps", "Deployment"), ("apiregistration.k8s.io", "APIService")),
        (("apps", "Deployment"), ("serving.knative.dev", "Service")),
        (("gateway.networking.k8s.io", "GatewayClass"), ("gateway.networking.k8s.io", "Gateway")),
        (("apiregistration.k8s.io", "APIService"), ("example.com", "Widget")),
        (("example.com", "Widget"), (ADMISSION, "ValidatingWebhookConfiguration")),
        (("apps", "Deployment"), (ADMISSION, "MutatingAdmissionPolicy")),
        (("networking.k8s.io", "Ingress"), (ADMISSION, "ValidatingAdmissionPolicyBinding")),
    ],
)
def test_what_is_needed_comes_first(first: tuple[str, str], then: tuple[str, str]) -> None:
    """A kind that needs another to be there is in a later tier."""
    assert tier(*first) < tier(*then)


def test_there_are_few_tiers() -> None:
    """Each tier is a wait: more of them, and a run is sequential."""
    assert len(Tier) <= 8


def test_a_wave_outweighs_the_kind_and_the_kind_the_name() -> None:
    """Objects sort by wave, tier, key."""
    ordered = [
        (-1, ObjectKey("example.com", "Widget", "z", "z")),
        (0, ObjectKey("", "Namespace", "", "z")),
        (0, ObjectKey("apps", "Deployment", "a", "b")),
        (0, ObjectKey("apps", "Deployment", "b", "a")),
        (1, ObjectKey("", "Namespace", "", "a")),
    ]
    assert all(sort_key(*one) < sort_key(*next_one) for one, next_one in pairwise(ordered))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("-5", -5), ("+3", 3), ("007", 7), ("0" * 20 + "1", 1), (str(2**63 - 1), 2**63 - 1)],
)
def test_a_wave_is_an_integer(text: str, expected: int) -> None:
    """Written in any way that Argo CD reads."""
    assert sync_wave({SYNC_WAVE: text}) == expected


@pytest.mark.parametrize("text", ["", "one", "1.0", " 1", "1_0", "٣", "0x1", "--1", "1\n", str(2**63), "9" * 5000])
def test_what_argo_cd_would_not_read_is_the_wave_0(text: str) -> None:
    """As it is there."""
    assert sync_wave({SYNC_WAVE: text}) == 0


def test_no_wave_is_the_wave_0() -> None:
    """Other annotations don't matter."""
    assert sync_wave({"argocd.argoproj.io/hook": "7"}) == 0
