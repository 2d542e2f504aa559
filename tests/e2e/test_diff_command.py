"""`starling diff` shows what an apply would change, by exit code, as text and as JSON, and writes nothing."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from starling.engine.diff import Change
from tests.e2e.applying import On, config_map, deployment, write
from tests.e2e.conftest import Starling
from tests.unit.engine.diff.changing import changed

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {password: %s}\n"


@pytest.fixture(scope="module")
def on(starling: Starling, kubectl: list[str]) -> On:
    """Commands on a bare cluster."""
    up = starling("local", "up", "diff")
    assert up.returncode == 0, up.stderr
    return On(starling, kubectl, up.stdout.strip(), "diff")


def test_before_the_first_apply_after_it_and_after_a_change(on: On, tmp_path: Path) -> None:
    """Everything is new, then nothing differs, then just the field; never a Secret's value."""
    files = write(tmp_path, {"a.yaml": config_map("a"), "secret.yaml": SECRET % "hunter22"})
    new = on.run("diff", "-f", files, "--name", "web")
    assert new.returncode == 1
    assert "ConfigMap diff/a (created)\n" in new.stdout
    assert "+   password: " in new.stdout
    assert "hunter22" not in new.stdout
    assert (on.get("configmap", "a"), on.get("configmap", "starling-web")) == (None, None)

    on.ok("apply", "-f", files, "--name", "web")
    same = on.run("diff", "-f", files, "--name", "web")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")

    files = write(tmp_path, {"a.yaml": config_map("a", "two"), "secret.yaml": SECRET % "hunter23"})
    changed = on.run("diff", "-f", files, "--name", "web")
    assert (changed.returncode, changed.stderr) == (1, "")
    assert changed.stdout.startswith("ConfigMap diff/a\n- data.value: one\n+ data.value: two\n")
    assert "hunter" not in changed.stdout
    found = json.loads(on.run("diff", "-f", files, "--name", "web", "-o", "json").stdout)
    assert (found["unit"], found["different"]) == ("cli/diff/Unit.web@this", True)
    changes = {each["name"]: [change["path"] for change in each["changes"]] for each in found["objects"]}
    assert changes == {"a": ["data.value"], "secret": ["data.password"]}
    assert on.get("configmap", "a")["data"] == {"value": "one"}


def test_what_would_be_pruned(on: On, tmp_path: Path) -> None:
    """Only with --prune is it a difference."""
    on.ok("apply", "-f", write(tmp_path, {"b.yaml": config_map("b"), "c.yaml": config_map("c")}), "--name", "prune")
    files = write(tmp_path, {"c.yaml": config_map("c")})
    assert on.run("diff", "-f", files, "--name", "prune").returncode == 0
    gone = on.run("diff", "-f", files, "--name", "prune", "--prune")
    assert gone.returncode == 1
    assert gone.stdout.startswith("ConfigMap diff/b (removed)\n")
    assert on.get("configmap", "b") is not None


def test_drift_shows(on: On, tmp_path: Path) -> None:
    """What someone else changed in the cluster is a difference, too."""
    files = write(tmp_path, {"d.yaml": config_map("d")})
    on.ok("apply", "-f", files, "--name", "drift")
    on.kubectl("patch", "configmap", "d", "-n", "diff", "-p", '{"data": {"value": "drift"}}')
    drifted = on.run("diff", "-f", files, "--name", "drift")
    assert (drifted.returncode, drifted.stdout) == (1, "ConfigMap diff/d\n- data.value: drift\n+ data.value: one\n")


DEPLOYMENT = deployment("web")
BESIDES = (
    DEPLOYMENT.replace("metadata: {name: web}", "metadata: {name: web, labels: {by: them}, annotations: {by: them}}")
    .replace("image: nginx", "image: nginx, env: [{name: BY, value: them}]")
    .replace("spec:\n", "spec:\n  minReadySeconds: 5\n", 1)
)


@pytest.mark.parametrize("tool", ["kubectl-create", "kubectl-client-side-apply", "helm"])
def test_first_contact(on: On, tmp_path: Path, tool: str) -> None:
    """What another tool's manifest said besides is shown to go, and no more; the apply then does what was shown."""
    theirs = write(tmp_path, {"web.yaml": BESIDES})
    verb = "apply" if "apply" in tool else "create"
    assert on.kubectl(verb, f"--field-manager={tool}", "-n", "diff", "-f", theirs).returncode == 0
    before = on.get("deployment", "web")
    files = write(tmp_path, {"web.yaml": DEPLOYMENT})
    shown = on.run("diff", "-f", files, "--name", tool, "-o", "json")
    assert shown.returncode == 1
    [found] = json.loads(shown.stdout)["objects"]
    goes = {change["path"] for change in found["changes"] if "after" not in change or change["after"] == 0}
    copied = {"metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]"} & goes
    assert goes - copied == {
        "metadata.annotations.by",
        "metadata.labels.by",
        "spec.minReadySeconds",
        "spec.template.spec.containers[name=main].env",
    }
    assert bool(copied) is (verb == "apply")
    assert on.get("deployment", "web") == before
    on.ok("apply", "-f", files, "--name", tool)
    changes = tuple(msgspec.convert(change, Change) for change in found["changes"])
    assert bare(changed(bare(before), changes)) == bare(on.get("deployment", "web"))
    assert on.kubectl("delete", "deployment", "web", "-n", "diff").returncode == 0


def test_a_plan_says_what_is_there_already(on: On, tmp_path: Path) -> None:
    """`apply --dry-run` takes a look; what isn't there is new."""
    on.kubectl("create", "configmap", "i", "-n", "diff")
    files = write(tmp_path, {"i.yaml": config_map("i"), "j.yaml": config_map("j")})
    assert on.ok("apply", "-f", files, "--name", "plan", "--dry-run") == [
        "apply ConfigMap diff/i: exists already, and will be adopted",
        "apply ConfigMap diff/j: new",
    ]


def bare(content: Any) -> Any:
    """An object without what the server writes about it."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {name: value for name, value in content["metadata"].items() if name in kept and value}
    return {**{name: content[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def test_what_cannot_be_changed(on: On, tmp_path: Path) -> None:
    """It is refused, 3; with --force it is a difference like others, 1, and the header says what becomes of it."""
    fixed = config_map("fixed") + "immutable: true\n"
    on.ok("apply", "-f", write(tmp_path, {"fixed.yaml": fixed}), "--name", "fixed")
    files = write(tmp_path, {"fixed.yaml": fixed.replace("one", "two")})
    refused = on.run("diff", "-f", files, "--name", "fixed")
    assert refused.returncode == 3
    assert "error: ConfigMap diff/fixed: would be refused" in refused.stderr
    assert "--force deletes and recreates" in refused.stderr
    forced = on.run("diff", "-f", files, "--name", "fixed", "--force")
    assert (forced.returncode, forced.stderr) == (1, "")
    first, words, *rest = forced.stdout.splitlines()
    assert first == "ConfigMap diff/fixed (deleted and created anew)"
    assert "immutable" in words
    assert rest == ["- data.value: one", "+ data.value: two"]


def test_a_namespace_that_is_not_there(on: On, tmp_path: Path) -> None:
    """What would go there is refused, of a kind yet to come too, unless the same files make the namespace."""
    namespaced = config_map("h").replace("name: h", "name: h\n  namespace: nowhere")
    kind = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: its.diff.test}\n"
        "spec:\n  group: diff.test\n  scope: Namespaced\n  names: {kind: It, plural: its}\n"
        "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n"
        "---\napiVersion: diff.test/v1\nkind: It\nmetadata: {name: it, namespace: nowhere}\n"
    )
    files = {"h.yaml": namespaced, "kind.yaml": kind}
    refused = on.run("diff", "-f", write(tmp_path, files), "--name", "nowhere")
    assert refused.returncode == 3
    for key in ("ConfigMap nowhere/h", "It.diff.test nowhere/it"):
        assert f"error: {key}: would be refused: there is no namespace nowhere" in refused.stderr
        assert f"{key} (created)" not in refused.stdout
    files["namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere}\n"
    promised = on.run("diff", "-f", write(tmp_path, files), "--name", "nowhere")
    assert (promised.returncode, promised.stderr) == (1, "")
    assert "ConfigMap nowhere/h (created)\n" in promised.stdout
    assert "It nowhere/it (created)\n" in promised.stdout


def test_a_secret_that_is_not_encoded(on: On, tmp_path: Path) -> None:
    """Exit code 3 with object, key and place, and without the value."""
    files = write(tmp_path, {"secret.yaml": SECRET.replace("stringData", "data") % "hunter22!"})
    wrong = on.run("diff", "-f", files, "--name", "encoded")
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert 'secret.yaml:1 (document 1): data["password"] of Secret secret is not base64' in wrong.stderr
    assert "hunter" not in wrong.stderr


def test_what_cannot_be_applied(on: On, tmp_path: Path) -> None:
    """A refusal and an unknown kind are errors, 3, told beside the difference; so is a broken file."""
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, labels: {a: 'no label'}}\n"
    nonsense = "apiVersion: nonsense.dev/v1\nkind: Nonsense\nmetadata: {name: it}\n"
    files = write(tmp_path, {"all.yaml": f"{bad}---\n{nonsense}---\n{config_map('f')}"})
    refused = on.run("diff", "-f", files, "--name", "bad")
    assert refused.returncode == 3
    assert "ConfigMap diff/f (created)" in refused.stdout
    assert "error: ConfigMap diff/e: would be refused" in refused.stderr
    assert "the cluster doesn't serve Nonsense in nonsense.dev/v1" in refused.stderr
    assert on.run("diff", "-f", "-", "--name", "bad", stdin="a: [").returncode == 3
