"""What enrolment makes is narrow: one cluster's account reaches that cluster's objects and nothing else."""

import base64
import json
from typing import Any

import pytest

from starling.api import KINDS, PLATFORM_NAMESPACE
from starling.api.enrolment import (
    agent_installation,
    downstream_documents,
    hub_documents,
    kubeconfig,
    owned_by,
    revoked,
)
from starling.errors import InputError

HUB = hub_documents("edge-7", "fleet", {"ring": "canary"}, ["zone", "region", "zone"])


def one(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The only document of a kind."""
    (found,) = [each for each in documents if each["kind"] == kind]
    return found


def test_the_hub_gets_five_objects_and_the_cluster_comes_first() -> None:
    """A Cluster that dials in, then account, role, binding and Lease, all in its namespace."""
    assert [each["kind"] for each in HUB] == ["Cluster", "ServiceAccount", "Role", "RoleBinding", "Lease"]
    assert {each["metadata"]["namespace"] for each in HUB} == {"fleet"}
    assert {each["metadata"]["name"] for each in HUB[1:]} == {"starling-cluster-edge-7"}
    cluster = HUB[0]
    assert cluster["metadata"]["labels"] == {"ring": "canary"}
    assert cluster["spec"] == {"pull": {"allowedLabels": ["region", "zone"]}}
    assert one(HUB, "Lease")["metadata"]["labels"]["starling.dev/cluster"] == "edge-7"


def test_every_rule_names_its_objects() -> None:
    """No rule is about all objects of a kind, none has a wildcard, and the list of them is this one."""
    rules = {
        (group, resource): (each["verbs"], each["resourceNames"])
        for each in one(HUB, "Role")["rules"]
        for group in each["apiGroups"]
        for resource in each["resources"]
    }
    assert rules == {
        ("starling.dev", "proxyassemblages"): (["get", "list", "watch"], ["edge-7"]),
        ("starling.dev", "proxyassemblages/status"): (["patch"], ["edge-7"]),
        ("starling.dev", "clusters/status"): (["patch"], ["edge-7"]),
        ("", "secrets"): (["get", "list", "watch"], ["starling-cluster-edge-7-credentials"]),
        ("", "serviceaccounts/token"): (["create"], ["starling-cluster-edge-7"]),
        ("coordination.k8s.io", "leases"): (["get", "patch", "update"], ["starling-cluster-edge-7"]),
    }


def test_revoking_deletes_all_but_the_cluster() -> None:
    """What dials in goes, the account first; the Cluster and what runs there stay."""
    made = [(each["kind"], each["metadata"]["name"]) for each in HUB[1:]]
    assert sorted((ref.resource.kind, ref.name) for ref in revoked("edge-7", "fleet")) == sorted(made)
    assert revoked("edge-7", "fleet")[0].path == ("/api/v1/namespaces/fleet/serviceaccounts/starling-cluster-edge-7")


def test_what_the_cluster_needs_can_go_with_it() -> None:
    """An owner is set on copies."""
    owned = owned_by(HUB[1:], "edge-7", "u1")
    assert all(each["metadata"]["ownerReferences"][0]["uid"] == "u1" for each in owned)
    assert all("ownerReferences" not in each["metadata"] for each in HUB)


def test_a_name_that_no_label_can_hold_is_refused() -> None:
    """The Lease's label has the cluster's name."""
    hub_documents("e" * 63, "fleet", {}, [])
    with pytest.raises(InputError, match="63"):
        hub_documents("e" * 64, "fleet", {}, [])


def test_the_kubeconfig_holds_data_only() -> None:
    """A server, its CA and a token; where public CAs vouch for the hub there is none."""
    config = kubeconfig("https://hub.example", "Q0E=", "secret", "fleet", "edge-7")
    assert config["clusters"][0]["cluster"] == {
        "server": "https://hub.example",
        "certificate-authority-data": "Q0E=",
    }
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["contexts"][0]["context"]["namespace"] == "fleet"
    assert "certificate-authority-data" not in kubeconfig("https://h", "", "t", "n", "c")["clusters"][0]["cluster"]


def test_the_cluster_gets_a_secret_and_an_upstream() -> None:
    """The kubeconfig arrives under a label that the agent watches, and the labels asked for stand in Upstream."""
    config = kubeconfig("https://hub.example", "", "secret", "fleet", "edge-7")
    documents = downstream_documents("edge-7", "fleet", config, {"zone": "b"})
    assert [each["kind"] for each in documents] == ["Namespace", "Secret", "Upstream"]
    secret, upstream = documents[1:]
    assert secret["metadata"]["labels"]["starling.dev/kubeconfig"] == "upstream"
    assert json.loads(base64.b64decode(secret["data"]["kubeconfig"])) == config
    assert upstream["spec"] == {
        "kubeconfigSecret": {"name": secret["metadata"]["name"]},
        "cluster": {"name": "edge-7", "labels": {"zone": "b"}},
    }
    platform = downstream_documents("edge-7", PLATFORM_NAMESPACE, config, {})
    assert [each["kind"] for each in platform] == ["Secret", "Upstream"]


def test_the_agent_runs_with_few_privileges_of_its_own_node() -> None:
    """Not as root, on a root file system that it can't write, without capabilities, with requests and probes."""
    documents = agent_installation("registry.example/starling:1")
    assert documents[0]["kind"] == "Namespace"
    assert sum(each["kind"] == "CustomResourceDefinition" for each in documents) == len(KINDS)
    pod = one(documents, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "registry.example/starling:1"
    assert container["args"][:5] == ["agent", "--address", "0.0.0.0", "--port", "8080"]  # noqa: S104 - inside a pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
