"""A real API server takes the whole installation, without a warning, and serves the kinds."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from starling.api import KINDS, installation

Kubectl = Callable[..., CompletedProcess[str]]

INSTALLATION = json.dumps({"apiVersion": "v1", "kind": "List", "items": installation()})


@pytest.fixture(scope="module")
def installed(kubectl: Kubectl) -> Iterator[CompletedProcess[str]]:
    """What kubectl said when applying the installation, once all kinds are served; objects are gone afterwards."""
    applied = kubectl("apply", "--server-side", "-f", "-", input=INSTALLATION)
    assert applied.returncode == 0, applied.stderr
    names = [f"crd/{each.declaration.crd_name}" for each in KINDS]
    established = kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    assert established.returncode == 0, established.stderr
    yield applied
    kubectl("delete", "source/listed", "source/observed", "rolloutpolicy/listed", "--ignore-not-found")


@pytest.fixture
def explained(kubectl: Kubectl, installed: CompletedProcess[str], tmp_path: Path) -> Callable[[str], str]:
    """Explains a field, once the API server has published the schema."""
    assert installed.returncode == 0

    def explain(field: str) -> str:
        deadline = time.monotonic() + 30
        while True:
            answer = kubectl("explain", field, "--cache-dir", str(tmp_path))
            if answer.returncode == 0 or time.monotonic() > deadline:
                assert answer.returncode == 0, answer.stderr
                return " ".join(answer.stdout.split())

    return explain


def test_the_installation_is_taken_without_a_warning(installed: CompletedProcess[str]) -> None:
    """Every document is applied, and the API server has nothing to remark."""
    assert installed.stdout.count("serverside-applied") == len(installation())
    assert installed.stderr == ""


@pytest.mark.usefixtures("installed")
def test_every_schema_is_structural_and_every_name_accepted(kubectl: Kubectl) -> None:
    """Every CRD is Established with its names accepted, and none has another condition to complain of."""
    for each in KINDS:
        crd = json.loads(kubectl("get", "crd", each.declaration.crd_name, "-o", "json").stdout)
        conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert crd["status"]["acceptedNames"] == crd["spec"]["names"]


@pytest.mark.usefixtures("installed")
def test_installing_again_changes_nothing(kubectl: Kubectl) -> None:
    """The API server stores what we generate as it is, so that a second apply writes nothing."""

    def versions() -> list[str]:
        listed = kubectl("get", "-f", "-", "-o", "json", input=INSTALLATION)
        return [each["metadata"]["resourceVersion"] for each in json.loads(listed.stdout)["items"]]

    before = versions()
    assert len(before) == len(installation())
    assert kubectl("apply", "--server-side", "-f", "-", input=INSTALLATION).returncode == 0
    assert versions() == before


def test_explain_reads_well(explained: Callable[[str], str]) -> None:
    """`kubectl explain` says what a field means, what it takes, and whether it must be there."""
    stages = explained("rolloutpolicy.spec.stages")
    assert 'The parts of the fleet, one after the other; clusters that none selects form a last one, "rest".' in stages
    assert "selector <Object> -required- The clusters of this stage, by label" in stages
    assert "approval <string> enum: Automatic, Manual" in stages
    assert "The tip of this branch." in explained("source.spec.git.ref")


@pytest.mark.usefixtures("installed")
def test_all_objects_are_listed_by_category(kubectl: Kubectl, tmp_path: Path) -> None:
    """`kubectl get starling -A` lists objects of every kind, with their columns."""
    source = {"url": "https://git.example/platform.git", "ref": {"semver": ">=1.2.0 <2"}}
    objects = [
        {"kind": "Source", "metadata": {"name": "listed"}, "spec": {"git": source}},
        {"kind": "RolloutPolicy", "metadata": {"name": "listed"}, "spec": {"maxConcurrent": "25%"}},
    ]
    items = [{"apiVersion": "starling.dev/v1alpha1"} | each for each in objects]
    created = kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert created.returncode == 0, created.stderr
    listed = kubectl("get", "starling", "-A", "--cache-dir", str(tmp_path)).stdout
    rows = [" ".join(line.split()) for line in listed.splitlines()]  # how wide a column is depends on who else is there
    assert any("source.starling.dev/listed https://git.example/platform.git >=1.2.0 <2" in row for row in rows), listed
    assert any("rolloutpolicy.starling.dev/listed 25% Pause false" in row for row in rows), listed
    shown = kubectl("get", "src,rp", "-o", "name", "--cache-dir", str(tmp_path)).stdout
    assert {"source.starling.dev/listed", "rolloutpolicy.starling.dev/listed"} <= set(shown.split())


@pytest.mark.usefixtures("installed")
def test_status_has_a_life_of_its_own(kubectl: Kubectl) -> None:
    """A new object says that nobody has looked yet; a status patch says more, and only through /status."""
    name = ("source.starling.dev", "observed")
    source = {"git": {"url": "https://git.example/platform.git", "ref": {"branch": "main"}}, "interval": "5m"}
    manifest = {"apiVersion": "starling.dev/v1alpha1", "kind": "Source", "metadata": {"name": "observed"}}
    created = kubectl(
        "apply", "-f", "-", input=json.dumps(manifest | {"spec": source, "status": {"revision": "forged"}})
    )
    assert created.returncode == 0, created.stderr
    assert json.loads(kubectl("get", *name, "-o", "json").stdout)["status"] == {"observedGeneration": -1}

    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Fetched",
        "message": "main@sha1:abc",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    status = {"observedGeneration": 1, "revision": "main@sha1:abc", "conditions": [ready]}
    patch = json.dumps({"status": status, "spec": {"interval": "9m"}})
    patched = kubectl("patch", *name, "--subresource=status", "--type=merge", "-p", patch, "-o", "json")
    assert patched.returncode == 0, patched.stderr
    assert json.loads(patched.stdout)["status"] == status
    assert json.loads(patched.stdout)["spec"]["interval"] == "5m"
    assert "True" in kubectl("get", *name).stdout.split()

    twice = json.dumps({"status": {"conditions": [ready, ready]}})
    refused = kubectl("patch", *name, "--subresource=status", "--type=merge", "-p", twice)
    assert "Duplicate value" in refused.stderr


MAY = [
    ("list", "sources.starling.dev", "--all-namespaces"),
    ("watch", "rolloutpolicies.starling.dev", "--all-namespaces"),
    ("patch", "sources.starling.dev", "--subresource=status", "--namespace=default"),
    ("create", "events.events.k8s.io", "--namespace=default"),
    ("update", "leases.coordination.k8s.io", "--namespace=starling-system"),
    ("get", "secrets", "--namespace=default"),
    ("patch", "proxyassemblages.starling.dev", "--namespace=default"),
]
MAY_NOT = [
    ("patch", "sources.starling.dev", "--namespace=default"),
    ("delete", "rolloutpolicies.starling.dev", "--namespace=starling-system"),
    ("delete", "secrets", "--namespace=default"),
    ("delete", "modules.starling.dev", "--namespace=default"),
    ("update", "leases.coordination.k8s.io", "--namespace=kube-system"),
    ("create", "pods", "--namespace=starling-system"),
    ("impersonate", "serviceaccounts", "--namespace=default"),
]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("verb", "resource", "where", "allowed"),
    [(*each[:2], each[2:], True) for each in MAY] + [(*each[:2], each[2:], False) for each in MAY_NOT],
    ids=[" ".join(each) for each in MAY] + ["not " + " ".join(each) for each in MAY_NOT],
)
def test_the_controller_may_do_its_work_and_no_more(
    kubectl: Kubectl, verb: str, resource: str, where: tuple[str, ...], *, allowed: bool
) -> None:
    """The API server's own answer to what the controller's account may do."""
    account = "--as=system:serviceaccount:starling-system:starling-controller"
    answer = kubectl("auth", "can-i", verb, resource, *where, account)
    assert answer.stdout.strip() == ("yes" if allowed else "no"), answer.stderr
