"""What well-known projects publish is read whole; what it has for an engine to cope with."""

from collections import Counter

import pytest

from starling.objects import Manifest, canonical_json
from tests.integration.third_party import BUNDLES, Bundle, Files, Unavailable, bundle_named, manifests

pytestmark = pytest.mark.timeout(900)  # the first run on a machine builds Helm

ANNOTATIONS_LIMIT = 262_144
"""The most that annotations may hold in all; client-side apply keeps a copy of the object in one."""

KINDS = {
    "prometheus-operator": {
        "CustomResourceDefinition": 10,
        "ClusterRole": 1,
        "ClusterRoleBinding": 1,
        "Deployment": 1,
        "Service": 1,
        "ServiceAccount": 1,
    },
    "cert-manager": {
        "CustomResourceDefinition": 6,
        "ClusterRole": 13,
        "ClusterRoleBinding": 10,
        "Deployment": 3,
        "MutatingWebhookConfiguration": 1,
        "Namespace": 1,
        "Role": 3,
        "RoleBinding": 3,
        "Service": 3,
        "ServiceAccount": 3,
        "ValidatingWebhookConfiguration": 1,
    },
    "metrics-server": {
        "APIService": 1,
        "ClusterRole": 2,
        "ClusterRoleBinding": 2,
        "Deployment": 1,
        "RoleBinding": 1,
        "Service": 1,
        "ServiceAccount": 1,
    },
    "argo-rollouts": {
        "CustomResourceDefinition": 5,
        "ClusterRole": 4,
        "ClusterRoleBinding": 1,
        "ConfigMap": 1,
        "Deployment": 1,
        "Secret": 1,
        "Service": 1,
        "ServiceAccount": 1,
    },
    "gateway-api": {
        "CustomResourceDefinition": 10,
        "ValidatingAdmissionPolicy": 1,
        "ValidatingAdmissionPolicyBinding": 1,
    },
    "podinfo": {"ConfigMap": 1, "Deployment": 3, "HorizontalPodAutoscaler": 2, "Namespace": 1, "Service": 3},
    "podinfo-secure": {
        "Certificate": 1,
        "ClusterIssuer": 1,
        "Deployment": 2,
        "HorizontalPodAutoscaler": 2,
        "Namespace": 1,
        "Role": 1,
        "RoleBinding": 1,
        "Service": 2,
        "ServiceAccount": 2,
    },
}


@pytest.fixture(params=BUNDLES, ids=lambda bundle: bundle.name)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """Each bundle in turn."""
    assert isinstance(request.param, Bundle)
    return request.param


@pytest.fixture
def objects(bundle: Bundle) -> list[Manifest]:
    """The bundle's objects, as published."""
    return manifests(bundle)


def of_kind(bundle: str, kind: str) -> list[Manifest]:
    """The objects of one kind in the bundle of that name."""
    return [manifest for manifest in manifests(bundle_named(bundle)) if manifest.key.kind == kind]


def size(manifest: Manifest) -> int:
    """How many bytes the object has as JSON."""
    return len(canonical_json(manifest.content))


def test_every_object_is_read(bundle: Bundle, objects: list[Manifest]) -> None:
    """Each bundle gives exactly the objects that its pinned version holds."""
    assert Counter(manifest.key.kind for manifest in objects) == KINDS[bundle.name]


def test_some_definitions_are_too_large_for_client_side_apply() -> None:
    """Six of prometheus-operator's CRDs don't fit into an annotation."""
    large = {
        manifest.name.partition(".")[0]
        for manifest in of_kind("prometheus-operator", "CustomResourceDefinition")
        if size(manifest) > ANNOTATIONS_LIMIT
    }
    assert large == {
        "alertmanagerconfigs",
        "alertmanagers",
        "prometheusagents",
        "prometheuses",
        "scrapeconfigs",
        "thanosrulers",
    }


def test_an_api_service_stands_for_a_workload_of_its_bundle() -> None:
    """metrics-server's API group is served by its Service, which no simulated pod answers for."""
    [service] = of_kind("metrics-server", "APIService")
    assert service.content["spec"]["service"] == {"name": "metrics-server", "namespace": "kube-system"}


def test_a_webhook_that_must_answer_guards_another_bundle() -> None:
    """cert-manager's validation fails closed, and podinfo-secure holds objects that it is asked about."""
    [configuration] = of_kind("cert-manager", "ValidatingWebhookConfiguration")
    [webhook] = configuration.content["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    guarded = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
    asked = {
        manifest.key.kind for manifest in manifests(bundle_named("podinfo-secure")) if manifest.key.group in guarded
    }
    assert asked == {"Certificate", "ClusterIssuer"}


def test_a_module_that_does_not_exist_is_named() -> None:
    """What can't be fetched is an error that names module and version."""
    with pytest.raises(Unavailable, match=r"can't fetch sigs\.k8s\.io/metrics-server@v0\.0\.99: "):
        manifests(Bundle("none", "sigs.k8s.io/metrics-server@v0.0.99", (Files("*.yaml"),)))


def test_files_that_are_not_there_are_named() -> None:
    """A pattern that matches nothing is an error, not an empty bundle."""
    with pytest.raises(Unavailable, match=r"metrics-server@v0\.7\.2 has no deploy/\*\.yaml"):
        manifests(Bundle("none", bundle_named("metrics-server").module, (Files("deploy/*.yaml"),)))
