"""`starling tree` shows what a unit has and what was made for it; `starling delete` takes it away or lets it go."""

import asyncio
import json
import subprocess
from itertools import permutations
from pathlib import Path

import pytest
import yaml

from starling.local import LocalClusters
from tests.e2e.applying import On, config_map, deployment, run_through, take_record, write
from tests.e2e.conftest import Starling
from tests.integration.engine.traffic import Asked, traffic


@pytest.fixture(scope="module")
def on(starling: Starling, kubectl: list[str]) -> On:
    """Commands on a cluster whose pods run."""
    up = starling("local", "up", "delete", "--workloads")
    assert up.returncode == 0, up.stderr
    return On(starling, kubectl, up.stdout.strip(), "delete")


def test_a_tree_of_what_was_made_for_a_unit(on: On, tmp_path: Path) -> None:
    """Objects with their children and readiness, as a drawing and as JSON; deleting takes all of it away."""
    kept = config_map("kept").replace("annotations: {", "annotations: {helm.sh/resource-policy: keep, ")
    files = write(tmp_path, {"web.yaml": deployment("web"), "kept.yaml": kept})
    on.ok("apply", "-f", files, "--name", "web", "--wait")
    on.kubectl("delete", "configmap", "kept", "-n", "delete")
    lines = on.ok("tree", "--name", "web")
    assert lines[:3] == [
        "web  Missing",
        "├── ConfigMap delete/kept  Missing: not there",
        "└── Deployment.apps delete/web  Current",
    ]
    assert lines[3].startswith("    └── ReplicaSet.apps delete/web-")
    assert lines[4].startswith("        └── Pod delete/web-")
    assert lines[4].endswith("  Current")

    on.ok("apply", "-f", files, "--name", "web")
    found = json.loads("\n".join(on.ok("tree", "--name", "web", "-o", "json")))
    assert (found["unit"], found["readiness"]) == ("cli/delete/Unit.web@this", "Current")
    assert found["operation"]["phase"] == "Succeeded"
    (replicas,) = found["objects"][1]["children"]
    assert [replicas["kind"], *(child["kind"] for child in replicas["children"])] == ["ReplicaSet", "Pod"]

    deleted = on.run("delete", "--name", "web")
    assert sorted(deleted.stdout.splitlines()) == [
        "ConfigMap delete/kept orphaned",
        "Deployment.apps delete/web deleted",
    ]
    assert deleted.stderr.splitlines()[-1] in {
        f"web: {', '.join(counts)}; the unit is gone" for counts in permutations(("1 deleted", "1 orphaned"))
    }
    assert on.get("deployment", "web") is None
    assert on.get("configmap", "starling-web") is None
    assert "starling.dev/sync" not in on.get("configmap", "kept")["metadata"].get("labels", {})


def test_a_tree_for_who_may_not_see_everything(on: On, tmp_path: Path) -> None:
    """Kinds that may not be listed are left out, and said to be, once."""
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("a")}), "--name", "weak")
    for role in (("role", "see", "--verb=get,list", "--resource=configmaps"), ("serviceaccount", "weak")):
        assert on.kubectl("create", *role, "-n", on.namespace).returncode == 0
    binding = ("rolebinding", "see", "--role=see", f"--serviceaccount={on.namespace}:weak")
    assert on.kubectl("create", *binding, "-n", on.namespace).returncode == 0
    token = on.kubectl("create", "token", "weak", "-n", on.namespace).stdout.strip()
    config = yaml.safe_load(Path(on.where[1]).read_text())
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "weak").write_text(yaml.safe_dump(config))
    done = on.run("tree", "--name", "weak", "--kubeconfig", str(tmp_path / "weak"))
    assert done.stdout.splitlines() == ["weak  Current", f"└── ConfigMap {on.namespace}/a  Current"]
    assert len(done.stderr.splitlines()) == 1
    assert "Deployment.apps" in done.stderr


def test_a_tree_tells_of_an_apply_that_failed(on: On, tmp_path: Path) -> None:
    """What is there may be Current while what was to come isn't there at all."""
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"
    files = write(tmp_path, {"a.yaml": config_map("failing"), "b.yaml": bad})
    assert on.run("apply", "-f", files, "--name", "failing").returncode == 3
    lines = on.ok("tree", "--name", "failing")
    assert lines[1].startswith("last apply failed: apply ConfigMap delete/Not_A_Name: ")
    assert "├── ConfigMap delete/Not_A_Name  Missing: not there" in lines
    found = json.loads("\n".join(on.ok("tree", "--name", "failing", "-o", "json")))["operation"]
    assert (found["phase"], "RFC 1123" in found["message"]) == ("Failed", True)
    assert found["revision"].startswith("sha256:")


async def test_a_tree_has_its_time(on: On, tmp_path: Path, environment: dict[str, str]) -> None:
    """Who gets no answer isn't kept waiting for ever."""
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("silent")}), "--name", "silent")
    async with traffic(LocalClusters(Path(environment["STARLING_LOCAL_DIR"])).get("delete")) as counted:

        async def silence(_: Asked) -> None:
            await asyncio.Event().wait()

        counted.before = silence
        code, said = await run_through(
            counted, environment, on, tmp_path, "tree", "--name", "silent", "--timeout", "500ms"
        )
    assert (code, said) == (4, "error: the objects of silent couldn't be listed in 500ms\n")


def test_what_has_moved_is_in_the_other_tree(on: On, tmp_path: Path) -> None:
    """The way that the refusal names deletes nothing, and afterwards each tree has what is the unit's."""
    both = write(tmp_path / "from", {"a.yaml": config_map("moves"), "b.yaml": config_map("stays")})
    on.ok("apply", "-f", both, "--name", "from")
    uid = on.get("configmap", "moves")["metadata"]["uid"]
    to = write(tmp_path / "to", {"a.yaml": config_map("moves")})
    refused = on.run("apply", "-f", to, "--name", "to")
    assert refused.returncode == 3
    assert "applies that unit first, without --prune" in refused.stderr
    (tmp_path / "from" / "a.yaml").unlink()
    on.ok("apply", "-f", both, "--name", "from")
    on.ok("apply", "-f", to, "--name", "to", "--prune")
    on.ok("apply", "-f", both, "--name", "from", "--prune")
    assert on.get("configmap", "moves")["metadata"]["uid"] == uid
    assert [line for line in on.ok("tree", "--name", "from") if "moves" in line] == []
    assert [line for line in on.ok("tree", "--name", "to") if "moves" in line] != []


def test_orphans_bear_no_mark_of_ours(on: On, tmp_path: Path) -> None:
    """Label, annotation and managed fields go, the objects stay; then there is no such unit, which is told with 2."""
    on.ok("apply", "-f", write(tmp_path, {"b.yaml": config_map("b")}), "--name", "orphans")
    assert on.ok("delete", "--name", "orphans", "--orphan") == ["ConfigMap delete/b orphaned"]
    found = on.get("configmap", "b")
    assert found["data"] == {"value": "one"}
    assert "starling" not in json.dumps(found)
    gone = on.run("delete", "--name", "orphans")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "there is no unit orphans in namespace delete: never applied, or deleted already" in gone.stderr
    assert "hint: " in gone.stderr


def test_what_takes_its_time_to_go(on: On, tmp_path: Path) -> None:
    """A finalizer holds an object: time runs out, or one doesn't wait; the same command finishes it later."""
    held = config_map("held").replace("metadata:\n", "metadata:\n  finalizers: [test.dev/hold]\n")
    on.ok("apply", "-f", write(tmp_path, {"held.yaml": held}), "--name", "held")
    late = on.run("delete", "--name", "held", "--timeout", "1s")
    assert (late.returncode, late.stdout) == (4, "ConfigMap delete/held being deleted\n")
    assert "held isn't deleted after 1 s: ConfigMap delete/held is Terminating" in late.stderr
    assert on.run("delete", "--name", "held", "--no-wait").returncode == 0
    assert on.get("configmap", "starling-held") is not None
    on.kubectl("patch", "configmap", "held", "-n", "delete", "-p", '{"metadata": {"finalizers": null}}')
    done: subprocess.CompletedProcess[str] = on.run("delete", "--name", "held", "-o", "json")
    assert (done.returncode, json.loads(done.stdout)["removed"]) == (0, True)
    assert on.get("configmap", "starling-held") is None


@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
async def test_vetoed_it_is_not_deleted(on: On, tmp_path: Path, environment: dict[str, str], wait: str) -> None:
    """Another process has the unit: nothing was deleted, which is no success."""
    name = f"vetoed-{wait.removeprefix('--')}"
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map(name)}), "--name", name)
    async with traffic(LocalClusters(Path(environment["STARLING_LOCAL_DIR"])).get("delete")) as counted:
        take_record(counted, on, f"starling-{name}")
        code, said = await run_through(
            counted, environment, on, tmp_path, "delete", "--name", name, wait, "--timeout", "30s"
        )
    assert on.get("configmap", name) is not None
    assert (code, f"another process writes the record of unit delete/{name}, " in said) == (3, True), said
