"""`starling diff` shows what an apply would change, by exit code, as text and as JSON, and writes nothing."""

import json
from pathlib import Path

import pytest

from tests.e2e.applying import On, config_map, write
from tests.e2e.conftest import Starling

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


def test_first_contact_is_told_of_in_the_help(on: On, tmp_path: Path) -> None:
    """What another tool's manifest said besides goes with the first apply; a dry run can't show it: the help does."""
    theirs = write(tmp_path, {"g.yaml": config_map("g").replace("{value: one}", "{value: one, besides: two}")})
    assert on.kubectl("apply", "-n", "diff", "-f", theirs).returncode == 0
    files = write(tmp_path, {"g.yaml": config_map("g")})
    assert "besides" not in on.run("diff", "-f", files, "--name", "contact").stdout
    assert "when it first meets an object that another tool made" in " ".join(on.run("diff", "--help").stdout.split())
    on.ok("apply", "-f", files, "--name", "contact")
    assert on.get("configmap", "g")["data"] == {"value": "one"}


def test_what_cannot_be_applied(on: On, tmp_path: Path) -> None:
    """A refusal and an unknown kind are errors, 3, told beside the difference; a broken file is 2."""
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, labels: {a: 'no label'}}\n"
    nonsense = "apiVersion: nonsense.dev/v1\nkind: Nonsense\nmetadata: {name: it}\n"
    files = write(tmp_path, {"all.yaml": f"{bad}---\n{nonsense}---\n{config_map('f')}"})
    refused = on.run("diff", "-f", files, "--name", "bad")
    assert refused.returncode == 3
    assert "ConfigMap diff/f (created)" in refused.stdout
    assert "error: ConfigMap diff/e: would be refused" in refused.stderr
    assert "the cluster doesn't serve Nonsense in nonsense.dev/v1" in refused.stderr
    assert on.run("diff", "-f", "-", "--name", "bad", stdin="a: [").returncode == 2
