"""`starling install` makes a cluster a hub, once or many times, by hand or through kubectl."""

from pathlib import Path

import pytest
import yaml

from starling.api import KINDS
from tests.e2e.conftest import Starling

CRDS = {resource.declaration.crd_name for resource in KINDS}


@pytest.fixture(scope="module")
def hub(starling: Starling) -> str:
    """A bare cluster's kubeconfig."""
    up = starling("local", "up", "hub")
    assert up.returncode == 0, up.stderr
    return up.stdout.strip()


def test_install_twice(starling: Starling, hub: str) -> None:
    """The first time everything is created, the second time nothing changes, and the kinds are served at once."""
    first = starling("install", "--kubeconfig", hub)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert all(line.endswith(" created") for line in lines)
    assert {line.split()[1] for line in lines if line.startswith("CustomResourceDefinition.")} == CRDS
    listed = starling("local", "kubectl", "hub", "get", "starling", "-A")
    assert (listed.returncode, listed.stderr.strip()) == (0, "No resources found")

    again = starling("install", "--kubeconfig", hub)
    assert [line.rsplit(" ", 1)[1] for line in again.stdout.splitlines()] == ["unchanged"] * len(lines)


def test_a_foreign_change_is_put_right(starling: Starling, hub: str) -> None:
    """Installing again mends what someone changed, and says which."""
    starling("install", "--kubeconfig", hub)
    patch = '[{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}]'
    starling("local", "kubectl", "hub", "patch", "clusterrole", "starling-view", "--type=json", "-p", patch)
    again = starling("install", "--kubeconfig", hub)
    assert "ClusterRole.rbac.authorization.k8s.io starling-view changed" in again.stdout.splitlines()


def test_export_is_what_kubectl_applies(starling: Starling) -> None:
    """The exported manifests make a hub through kubectl, without a warning."""
    exported = starling("install", "--export")
    assert exported.returncode == 0
    assert exported.stderr == ""
    kinds = [document["kind"] for document in yaml.safe_load_all(exported.stdout)]
    assert kinds.count("CustomResourceDefinition") == len(CRDS)
    assert starling("local", "up", "by-hand").returncode == 0
    applied = starling("local", "kubectl", "by-hand", "apply", "--server-side", "-f", "-", stdin=exported.stdout)
    assert applied.returncode == 0, applied.stderr
    assert applied.stderr == ""
    assert len(applied.stdout.splitlines()) == len(kinds)


def test_no_cluster_is_an_error_with_a_way_out(starling: Starling) -> None:
    """A kubeconfig that isn't there is named, with hints; the call is wrong, so the exit code is 2."""
    failed = starling("install", "--kubeconfig", "/nowhere/config")
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert "error: no kubeconfig at /nowhere/config" in failed.stderr
    assert "hint: " in failed.stderr


def test_an_account_without_rights_is_told_which(starling: Starling, hub: str) -> None:
    """Refused by the API server, the message names the object and what is missing."""
    starling("install", "--kubeconfig", hub)
    token = starling("local", "kubectl", "hub", "create", "token", "default", "-n", "starling-system")
    if token.returncode != 0:  # without a controller-manager nobody makes default accounts
        starling("local", "kubectl", "hub", "create", "serviceaccount", "default", "-n", "starling-system")
        token = starling("local", "kubectl", "hub", "create", "token", "default", "-n", "starling-system")
    config = yaml.safe_load(Path(hub).read_text())
    config["users"][0]["user"] = {"token": token.stdout.strip()}
    Path(f"{hub}.weak").write_text(yaml.safe_dump(config))
    failed = starling("install", "--kubeconfig", f"{hub}.weak")
    assert failed.returncode == 3
    assert "Namespace starling-system" in failed.stderr
    assert "forbidden" in failed.stderr
