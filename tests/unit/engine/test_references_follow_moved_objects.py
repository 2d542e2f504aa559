"""With a target namespace, what refers to a moved ServiceAccount or Service refers to its new place."""

import copy
from typing import Any

import pytest

from starling.engine.prepare import prepare
from starling.engine.unit import Unit
from starling.kube import Resource
from starling.objects import GroupVersionKind, Manifest, load_manifests

RBAC = "rbac.authorization.k8s.io"
KINDS = {
    GroupVersionKind(group, "v1", kind): Resource(group, "v1", kind, f"{kind.lower()}s", namespaced)
    for group, kind, namespaced in (
        ("", "ServiceAccount", True),
        ("", "Service", True),
        (RBAC, "RoleBinding", True),
        (RBAC, "ClusterRoleBinding", False),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", False),
        ("apiregistration.k8s.io", "APIService", False),
        ("apiextensions.k8s.io", "CustomResourceDefinition", False),
    )
}
SET = """
{apiVersion: v1, kind: ServiceAccount, metadata: {name: own, namespace: old}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bare}}
---
{apiVersion: v1, kind: Service, metadata: {name: hook, namespace: old}}
---
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: KIND
metadata: {name: a}
webhooks:
- {name: ours, clientConfig: {caBundle: x, service: {name: hook, namespace: old, path: /a}}}
- {name: other, clientConfig: {service: {name: hook, namespace: kube-system}}}
- {name: url, clientConfig: {url: https://example.com}}
"""
API_SERVICE = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {group: example.com, service: {name: NAME, namespace: old}}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: hook, namespace: old}}}}}
"""


def placed(text: str, target: str = "new") -> dict[str, Any]:
    """The last object of the set with this text behind it, as it will be applied; what was given stays as it was."""
    manifests: list[Manifest] = load_manifests(SET + text, "f.yaml")
    before = copy.deepcopy([manifest.content for manifest in manifests])
    unit = Unit(id="home/shop/Sync.web@edge", cluster="edge", target_namespace=target)
    result = prepare(manifests, unit, KINDS)
    assert [manifest.content for manifest in manifests] == before
    wanted = manifests[-1]
    return next(each.manifest.content for each in result.desired if each.manifest.origin == wanted.origin)


def subjects(text: str, kind: str = "ClusterRoleBinding", target: str = "new") -> Any:
    """The subjects of a binding, as they will be applied."""
    binding = f"{{apiVersion: {RBAC}/v1, kind: {kind}, metadata: {{name: a}}, roleRef: {{}}, subjects: {text}}}"
    return placed(binding, target)["subjects"]


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
@pytest.mark.parametrize(
    ("subject", "namespace"),
    [
        pytest.param("kind: ServiceAccount, name: own, namespace: old", "new", id="the place it left"),
        pytest.param("kind: ServiceAccount, name: own", "new", id="no place"),
        pytest.param("kind: ServiceAccount, name: bare, namespace: default", "new", id="where it would have been"),
        pytest.param("kind: ServiceAccount, name: own, namespace: kube-system", "kube-system", id="elsewhere"),
        pytest.param("kind: ServiceAccount, name: stranger, namespace: old", "old", id="not in the set"),
        pytest.param("kind: ServiceAccount, name: hook, namespace: old", "old", id="a Service's name"),
        pytest.param("kind: User, name: own, namespace: old", "old", id="a user"),
        pytest.param("kind: ServiceAccount, name: [own], namespace: old", "old", id="no name"),
    ],
)
def test_subjects_follow_their_account(kind: str, subject: str, namespace: str) -> None:
    """Accounts of the set do, all others stay."""
    [moved] = subjects(f"[{{{subject}}}]", kind)
    assert moved["namespace"] == namespace


def test_without_a_target_nothing_is_rewritten() -> None:
    """Even if a subject lacks its namespace: that is the API server's to refuse."""
    assert subjects("[{kind: ServiceAccount, name: own}]", target="") == [{"kind": "ServiceAccount", "name": "own"}]


@pytest.mark.parametrize("text", ["", "7", "[7]", "{a: b}"])
def test_what_is_no_list_of_subjects_stays(text: str) -> None:
    """Nothing breaks over it; the API server says what is wrong."""
    expected = load_manifests(f"{{apiVersion: v1, kind: A, metadata: {{name: a}}, subjects: {text}}}")[0]
    assert subjects(text) == expected.content["subjects"]


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_webhooks_follow_their_service(kind: str) -> None:
    """The rest of a webhook stays as it is."""
    ours, other, url = placed(WEBHOOK.replace("KIND", kind))["webhooks"]
    assert ours["clientConfig"] == {"caBundle": "x", "service": {"name": "hook", "namespace": "new", "path": "/a"}}
    assert other["clientConfig"]["service"]["namespace"] == "kube-system"
    assert url["clientConfig"] == {"url": "https://example.com"}


@pytest.mark.parametrize(("name", "namespace"), [("hook", "new"), ("own", "old"), ("stranger", "old")])
def test_an_api_service_follows_its_service(name: str, namespace: str) -> None:
    """If it is one of the set."""
    assert placed(API_SERVICE.replace("NAME", name))["spec"]["service"] == {"name": name, "namespace": namespace}


def test_a_conversion_follows_its_service() -> None:
    """A CRD whose objects a webhook of the set converts."""
    conversion = placed(CRD)["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"]["service"] == {"name": "hook", "namespace": "new"}
    assert conversion["strategy"] == "Webhook"
