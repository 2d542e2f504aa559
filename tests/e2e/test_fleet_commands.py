"""The commands of the fleet on real API servers: adding and enrolling clusters, seeing and letting go of them."""

import base64
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.e2e.conftest import Starling

NAMESPACE = "starling-system"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

pytestmark = pytest.mark.timeout(600)


class Place(NamedTuple):
    """A cluster."""

    kubeconfig: str
    kubectl: Callable[..., "subprocess.CompletedProcess[str]"]

    def get(self, *what: str) -> Any:
        """An object, or objects; None if it isn't there."""
        found = self.kubectl("get", "-n", NAMESPACE, *what, "-o", "json")
        return json.loads(found.stdout) if found.returncode == 0 else None

    def apply(self, document: dict[str, Any]) -> None:
        """Have an object, with its status."""
        for more in ([], ["--subresource=status"]) if "status" in document else ([],):
            done = self.kubectl(
                "apply", "--server-side", "--field-manager=test", "--force-conflicts", *more, "-f", "-",
                stdin=json.dumps(document),
            )  # fmt: skip
            assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def places(starling: Starling, kubectl: list[str]) -> dict[str, Place]:
    """A hub with Starling's kinds, and two clusters that have nothing."""
    up = starling("local", "up", "hub", "edge", "far")
    assert up.returncode == 0, up.stderr
    hub, edge, far = up.stdout.split()
    assert starling("install", "--kubeconfig", hub).returncode == 0
    return {name: _place(kubectl, path) for name, path in (("hub", hub), ("edge", edge), ("far", far))}


def _place(kubectl: list[str], kubeconfig: str) -> Place:
    def run(*arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        command = [*kubectl, "--kubeconfig", kubeconfig, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    return Place(kubeconfig, run)


@pytest.fixture
def hub(places: dict[str, Place]) -> Iterator[Place]:
    """The hub, in the end without a fleet."""
    hub = places["hub"]
    yield hub
    for kind in ("modules", "clusters", "proxyassemblages", "events", "secrets"):
        hub.kubectl("delete", kind, "--all", "-n", NAMESPACE)


def ok(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The lines of a command that must succeed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_cluster_is_added_once_or_twice(starling: Starling, places: dict[str, Place], hub: Place) -> None:
    """The first time everything is created; the second time only what was asked for changes, and labels stay."""
    edge = places["edge"]
    added = ("cluster", "add", "eu-1", "--kubeconfig", edge.kubeconfig, "--hub", hub.kubeconfig)
    first = starling(*added, "--labels", "region=eu,ring=canary")
    assert {line.rsplit(" ", 1)[1] for line in ok(first)} == {"created"}
    assert "starling agent --kubeconfig" in first.stderr
    assert edge.get("deployment", "starling-agent") is not None
    assert edge.kubectl("get", "assemblages,syncs", "-A").returncode == 0

    again = ok(starling(*added, "--labels", "ring=stable", "--no-agent"))
    changed = [line for line in again if not line.endswith(" unchanged")]
    assert changed == ["hub: Cluster.starling.dev starling-system/eu-1 changed"]
    cluster = hub.get("cluster.starling.dev", "eu-1")
    assert cluster["metadata"]["labels"] == {"region": "eu", "ring": "stable"}
    assert cluster["spec"] == {
        "mode": "Active",
        "push": {"kubeconfigSecret": {"name": "starling-cluster-eu-1-kubeconfig"}},
    }
    assert {line.rsplit(" ", 1)[1] for line in ok(starling(*added, "--no-agent"))} == {"unchanged"}

    secret = hub.get("secret", "starling-cluster-eu-1-kubeconfig")
    assert secret["metadata"]["labels"]["starling.dev/kubeconfig"] == "cluster"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]
    stored = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))
    assert (
        stored["clusters"][0]["cluster"]["server"]
        == yaml.safe_load(Path(edge.kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
    )


def test_what_can_not_be_added_is_refused(
    starling: Starling, places: dict[str, Place], hub: Place, tmp_path: Path
) -> None:
    """A program in the kubeconfig, a hub that is none, a cluster that dials in: each says so, and nothing is done."""
    edge = places["edge"]
    config = yaml.safe_load(Path(edge.kubeconfig).read_text())
    config["users"][0]["user"] = {"exec": {"command": "login"}}
    (tmp_path / "exec").write_text(json.dumps(config))
    refused = starling("cluster", "add", "a", "--kubeconfig", str(tmp_path / "exec"), "--hub", hub.kubeconfig)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'exec'" in refused.stderr
    assert "hint: make a service account" in refused.stderr

    misnamed = starling("cluster", "add", "A", "--kubeconfig", edge.kubeconfig, "--hub", hub.kubeconfig)
    assert (misnamed.returncode, misnamed.stdout) == (2, "")

    no_hub = starling("cluster", "add", "a", "--kubeconfig", edge.kubeconfig, "--hub", places["far"].kubeconfig)
    assert (no_hub.returncode, no_hub.stdout) == (3, "")
    assert "is no hub" in no_hub.stderr

    ok(starling("enrol", "a", "--kubeconfig", hub.kubeconfig))
    turned = starling("cluster", "add", "a", "--kubeconfig", edge.kubeconfig, "--hub", hub.kubeconfig)
    assert (turned.returncode, turned.stdout) == (2, "")
    assert "cluster a is reached by pull, not by push" in turned.stderr


def test_an_enrolled_cluster_may_dial_in_until_revoked(
    starling: Starling, places: dict[str, Place], hub: Place, kubectl: list[str], tmp_path: Path
) -> None:
    """What is printed, kubectl applies there; the token in it reads the cluster's own proxy, once revoked nothing."""
    printed = ok(
        starling("enrol", "far", "--labels", "region=us", "--allow-label", "zone", "--kubeconfig", hub.kubeconfig)
    )
    manifests = "\n".join(printed)
    far = places["far"]
    far.kubectl("apply", "--server-side", "-f", "-", stdin=manifests)  # it doesn't know Upstreams yet
    applied = far.kubectl("apply", "--server-side", "-f", "-", stdin=manifests)
    assert applied.returncode == 0, applied.stderr
    assert far.get("upstream", "hub")["spec"]["cluster"] == {"name": "far", "labels": {}}
    cluster = hub.get("cluster.starling.dev", "far")
    assert (cluster["metadata"]["labels"], cluster["spec"]["pull"]) == ({"region": "us"}, {"allowedLabels": ["zone"]})
    account = hub.get("serviceaccount", "starling-cluster-far")
    assert account["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]

    hub.apply(proxy("far"))
    hub.apply(proxy("other"))
    own = _as_enrolled(far, kubectl, tmp_path)
    assert own.get("proxyassemblage", "far") is not None
    forbidden = own.kubectl("get", "-n", NAMESPACE, "proxyassemblage", "other")
    assert "forbidden" in forbidden.stderr

    ok(starling("enrol", "far", "--into", far.kubeconfig, "--kubeconfig", hub.kubeconfig, "--no-agent"))
    renewed = _as_enrolled(far, kubectl, tmp_path)
    assert renewed.get("proxyassemblage", "far") is not None
    assert hub.get("cluster.starling.dev", "far")["spec"]["pull"] == {"allowedLabels": ["zone"]}

    ok(starling("enrol", "far", "--revoke", "--kubeconfig", hub.kubeconfig))
    assert hub.get("cluster.starling.dev", "far") is not None
    # An API server remembers for some seconds who a token was; what it allowed is gone in any case.
    assert re.search("Unauthorized|Forbidden", renewed.kubectl("get", "-n", NAMESPACE, "proxyassemblage", "far").stderr)
    again = starling("enrol", "far", "--revoke", "--kubeconfig", hub.kubeconfig)
    assert (again.returncode, again.stderr) == (0, "far has no account to revoke\n")


def _as_enrolled(place: Place, kubectl: list[str], folder: Path) -> Place:
    """The hub as the cluster's own account sees it."""
    data = place.get("secret", "starling-upstream")["data"]["kubeconfig"]
    (folder / "upstream").write_bytes(base64.b64decode(data))
    return _place(kubectl, str(folder / "upstream"))


def test_clusters_are_let_go(starling: Starling, places: dict[str, Place], hub: Place) -> None:
    """Removed, with what opens doors to it or from it; one that nobody lets go is waited for, and said so."""
    edge = places["edge"]
    ok(starling("cluster", "add", "eu-1", "--kubeconfig", edge.kubeconfig, "--hub", hub.kubeconfig, "--no-agent"))
    removed = starling("cluster", "remove", "eu-1", "--hub", hub.kubeconfig)
    assert ok(removed)[:2] == [
        "hub: Cluster.starling.dev starling-system/eu-1 deleted",
        "hub: Secret starling-system/starling-cluster-eu-1-kubeconfig deleted",
    ]
    assert "eu-1 is let go, but wasn't there to hear of it: what runs there stays, Starling's marks" in removed.stderr
    assert starling("cluster", "remove", "eu-1", "--hub", hub.kubeconfig).returncode == 2

    hub.apply(cluster("us-1"))
    heard = starling("cluster", "remove", "us-1", "--hub", hub.kubeconfig)
    assert ok(heard)[0] == "hub: Cluster.starling.dev starling-system/us-1 deleted"
    assert "us-1 is let go; what runs there stays, what Modules brought there without" in heard.stderr

    hub.apply(cluster("held", finalizers=["example.com/hold"]))
    late = starling("cluster", "remove", "held", "--hub", hub.kubeconfig, "--timeout", "1s")
    assert late.returncode == 4
    assert "waiting for held" in late.stderr
    hub.kubectl(
        "patch", "scl", "held", "-n", NAMESPACE, "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'
    )


def test_what_no_module_claims_is_released(starling: Starling, hub: Place) -> None:
    """It leaves the cluster's entries; one that a Module claims doesn't, nor any before the cluster was taken over."""
    where = ("--hub", hub.kubeconfig)
    hub.apply(cluster("eu-1"))
    hub.apply(proxy("eu-1", "old", "web", adopted=""))
    early = starling("cluster", "release", "eu-1", "old", *where)
    assert early.returncode == 3
    assert "hasn't been taken over yet" in early.stderr
    hub.apply(module("web"))
    hub.apply(proxy("eu-1", "old", "web"))
    claimed = starling("cluster", "release", "eu-1", "web", *where)
    assert claimed.returncode == 2
    assert "Module starling-system/web claims it" in claimed.stderr
    done = starling("cluster", "release", "eu-1", "old", *where)
    assert ok(done) == ["old is released: its objects on eu-1 are deleted"]
    assert [each["name"] for each in hub.get("proxyassemblage", "eu-1")["spec"]["syncs"]] == ["web"]
    assert starling("cluster", "release", "eu-1", "old", *where).returncode == 2


def test_the_fleet_in_a_table(starling: Starling, hub: Place) -> None:
    """Clusters by Modules, as text and as JSON; one kind alone; what a selector picks."""
    _fleet(hub)
    where = ("--kubeconfig", hub.kubeconfig)
    table = starling("get", *where)
    assert ok(table) == [
        "CLUSTER  PHASE        MODE    web",
        "eu-1     Ready        Active  v1.2.0 ok",
        "us-1     Unreachable  Active  v1.2.0 unreachable",
    ]
    assert table.stderr == "2 clusters (1 ready, 1 unreachable); 1 module (1 progressing); 1 ok, 1 unreachable\n"
    found = json.loads("\n".join(ok(starling("get", "-A", "-l", "region=eu", "-o", "json", *where))))
    assert [each["name"] for each in found["clusters"]] == ["eu-1"]
    assert found["clusters"][0]["modules"][0]["state"] == "ok"
    assert ok(starling("get", "modules", *where))[1].split() == [
        "web", "Progressing", "1/2", "v1.2.0", "platform", "./web",
    ]  # fmt: skip
    assert ok(starling("get", "clusters", *where))[1].split()[:5] == ["eu-1", "Ready", "Active", "pull", "v1.36.0"]
    for what in ((), ("clusters",)):
        wrong = starling("get", *what, "-l", "region===eu", *where)
        assert wrong.returncode == 2
        assert "error: 'region===eu' is no selector: " in wrong.stderr
    nothing = starling("get", "-n", "default", *where)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr == "there are no clusters in default; -A looks everywhere\n"


def test_why_it_is_not_ready(starling: Starling, hub: Place) -> None:
    """A Module and a Cluster, with conditions, states and events; the exit code is whether it is Ready."""
    _fleet(hub)
    where = ("--kubeconfig", hub.kubeconfig)
    told = starling("status", "module", "web", *where)
    assert told.returncode == 1
    assert "  ready     no (Progressing): 1 of 2" in told.stdout
    assert "  us-1  v1.2.0 unreachable  gone quiet" in told.stdout
    there = starling("status", "cluster", "eu-1", *where)
    assert (there.returncode, there.stderr) == (0, "")
    assert "web   v1.2.0 ok  Current" in there.stdout
    lines = there.stdout.splitlines()
    assert lines[-1].split()[1:] == ["Normal", "Ready", "it", "answers"]
    document = json.loads(starling("status", "cluster", "us-1", "-o", "json", *where).stdout)
    assert (document["ready"], document["phase"], document["events"]) == (False, "Unreachable", [])
    missing = starling("status", "module", "wbe", *where)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no module wbe in namespace starling-system" in missing.stderr
    assert "hint: there is: web" in missing.stderr


def test_clusters_in_a_list_and_one_in_full(starling: Starling, hub: Place) -> None:
    """How each is reached and seen, with its Modules counted; one alone is what `starling status cluster` tells."""
    _fleet(hub)
    where = ("--hub", hub.kubeconfig)
    rows = [line.split() for line in ok(starling("cluster", "list", *where))]
    assert rows == [
        ["CLUSTER", "PHASE", "MODE", "BY", "SEEN", "KUBERNETES", "AGENT", "OK"],
        ["eu-1", "Ready", "Active", "pull", "now", "v1.36.0", "-", "1/1"],
        ["us-1", "Unreachable", "Active", "pull", "-", "v1.36.0", "-", "0/1"],
    ]
    found = json.loads("\n".join(ok(starling("cluster", "list", "-A", "-l", "region=eu", "-o", "json", *where))))
    assert [(each["name"], each["runs"]) for each in found["clusters"]] == [("eu-1", {"ok": 1, "total": 1})]
    shown = starling("cluster", "show", "us-1", *where)
    same = starling("status", "cluster", "us-1", "--kubeconfig", hub.kubeconfig)
    assert (shown.returncode, shown.stdout) == (same.returncode, same.stdout) == (1, same.stdout)
    assert "web   v1.2.0 unreachable  Current    gone quiet" in shown.stdout


def test_what_may_be_done_on_clusters(starling: Starling, hub: Place) -> None:
    """By name or by label, as often as one likes; what was so before is told, and a wrong name changes nothing."""
    _fleet(hub)
    where = ("--hub", hub.kubeconfig)

    def modes() -> list[str]:
        return [each["spec"]["mode"] for each in hub.get("clusters.starling.dev")["items"]]

    assert ok(starling("cluster", "cordon", "eu-1", *where)) == ["eu-1 is Cordoned, and was Active"]
    assert ok(starling("cluster", "cordon", "eu-1", "us-1", *where)) == [
        "eu-1 is Cordoned already",
        "us-1 is Cordoned, and was Active",
    ]
    assert ok(starling("cluster", "freeze", "-l", "region=eu", *where)) == ["eu-1 is Frozen, and was Cordoned"]
    assert modes() == ["Frozen", "Cordoned"]
    assert ok(starling("cluster", "activate", "eu-1", "eu-1", *where)) == ["eu-1 is Active, and was Frozen"]
    wrong = [("us-1", "us-2"), (), ("us-1", "-l", "region=eu"), ("-l", "region=mars"), ("-l", "region===eu")]
    for which in wrong:
        refused = starling("cluster", "activate", *which, *where)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "hint: " in refused.stderr
    assert modes() == ["Active", "Cordoned"]


def _fleet(hub: Place) -> None:
    """A reachable cluster and one that isn't, with one Module on both."""
    hub.apply(cluster("eu-1", {"region": "eu"}))
    hub.apply(cluster("us-1", phase="Unreachable"))
    hub.apply(module("web"))
    hub.apply(proxy("eu-1", "web"))
    hub.apply(proxy("us-1", "web", message="gone quiet"))
    about = hub.get("cluster.starling.dev", "eu-1")["metadata"]["uid"]
    hub.apply(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "ready", "namespace": NAMESPACE},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "starling",
            "reportingInstance": "test",
            "action": "Look",
            "reason": "Ready",
            "note": "it answers",
            "type": "Normal",
            "regarding": {"kind": "Cluster", "namespace": NAMESPACE, "name": "eu-1", "uid": about},
        }
    )


def _condition(status: str, reason: str, message: str) -> dict[str, Any]:
    time = "2026-01-01T00:00:00Z"
    return {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def cluster(
    name: str, labels: dict[str, str] | None = None, phase: str = "Ready", finalizers: list[str] | None = None
) -> dict[str, Any]:
    """A Cluster that dials in."""
    there = phase == "Ready"
    return {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels or {}, "finalizers": finalizers or []},
        "spec": {"pull": {}},
        "status": {
            "phase": phase,
            "kubernetesVersion": "v1.36.0",
            "observedGeneration": 1,
            "conditions": [_condition("True" if there else "False", phase, "it is there" if there else "it is quiet")],
        },
    }


def module(name: str) -> dict[str, Any]:
    """A Module for every cluster."""
    return {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Module",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {}, "sync": {"source": {"name": "platform"}, "path": "./web"}},
        "status": {
            "phase": "Progressing",
            "target": "t1:new",
            "revision": f"v1.2.0@sha1:{COMMIT}",
            "summary": {"total": 2, "succeeded": 1, "ready": "1/2"},
            "observedGeneration": 1,
            "conditions": [_condition("False", "Progressing", "1 of 2 clusters are at the target")],
        },
    }


def proxy(name: str, *entries: str, adopted: str = "uid", message: str = "") -> dict[str, Any]:
    """All that a cluster runs, and is well."""
    git = {"url": "https://git.example/platform", "commit": COMMIT, "tag": "v1.2.0"}
    said = {"target": "t1:new", "revision": f"sha1:{COMMIT}", "state": "succeeded", "readiness": "Current"}
    return {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "ProxyAssemblage",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "instance": "fleet",
            "adopted": adopted,
            "syncs": [{"name": each, "unit": each, "target": "t1:new", "source": {"git": git}} for each in entries],
        },
        "status": {
            "assemblage": "uid",
            "syncs": [{"name": each, "message": message, **said} for each in entries],
        },
    }
