"""`starling apply` makes a cluster have what files say, and remembers what it has."""

import asyncio
import itertools
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from starling.local import LocalCluster, LocalClusters
from tests.e2e.applying import On, config_map, deployment, run_through, take_record, write
from tests.e2e.conftest import Starling
from tests.integration.engine.traffic import Traffic, traffic
from tests.waiting import until

READY = {
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration"), 1),
    "conditions": [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ],
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def kubeconfig(starling: Starling) -> str:
    """A cluster without controllers: Deployments never get ready."""
    up = starling("local", "up", "apply")
    assert up.returncode == 0, up.stderr
    return up.stdout.strip()


@pytest.fixture
def on(starling: Starling, kubectl: list[str], kubeconfig: str) -> On:
    """Commands in a namespace of their own."""
    return On(starling, kubectl, kubeconfig, f"apply-{next(_numbers)}")


def cluster(environment: dict[str, str]) -> LocalCluster:
    """The cluster itself."""
    return LocalClusters(Path(environment["STARLING_LOCAL_DIR"])).get("apply")


async def asked(environment: dict[str, str], on: On, folder: Path, *arguments: str) -> tuple[Traffic, str]:
    """Run a command through a way that counts requests; what was asked, and what it said."""
    async with traffic(cluster(environment)) as counted:
        code, said = await run_through(counted, environment, on, folder, *arguments)
        assert code == 0, said
        return counted, said


async def test_only_what_changed_is_written(on: On, tmp_path: Path, environment: dict[str, str]) -> None:
    """First everything is created; then nothing is sent but reads; one changed manifest is one write."""
    files = write(tmp_path, {f"{name}.yaml": config_map(name) for name in ("a", "b", "c")})
    first = on.ok("apply", "-f", files, "--name", "web")
    assert sorted(first) == [f"ConfigMap {on.namespace}/{name} created" for name in ("a", "b", "c")]

    apply = ("apply", "-f", files, "--name", "web")
    counted, said = await asked(environment, on, tmp_path, *apply)
    assert said == "web: 3 unchanged\n"
    assert counted.writes() == []
    assert [each.name for each in counted.gets()] == ["starling-web"]

    (tmp_path / "b.yaml").write_text(config_map("b", "two"))
    counted, said = await asked(environment, on, tmp_path, *apply)
    assert said.splitlines() == [f"ConfigMap {on.namespace}/b changed", "web: 1 changed, 2 unchanged"]
    assert [each.name for each in counted.writes()] == ["starling-web", "b", "starling-web"]


def test_what_is_left_can_be_pruned_later(on: On, tmp_path: Path) -> None:
    """Without --prune an object stays, run after run, and the unit still knows it; with --prune it goes."""
    both = {"a.yaml": config_map("a"), "sub/b.yml": config_map("b")}
    on.ok("apply", "-f", write(tmp_path, both), "--name", "web")
    (tmp_path / "sub" / "b.yml").unlink()
    for lines in ([f"ConfigMap {on.namespace}/b left"], []):
        left = on.run("apply", "-f", str(tmp_path), "--name", "web")
        assert (left.returncode, left.stdout.splitlines()) == (0, lines)
        assert f"left, though no longer in the files: ConfigMap {on.namespace}/b; --prune" in left.stderr
        assert "1 unchanged" in left.stderr
    assert on.get("configmap", "b") is not None
    assert on.ok("apply", "-f", str(tmp_path), "--name", "web", "--prune") == [f"ConfigMap {on.namespace}/b pruned"]
    assert on.get("configmap", "b") is None


def test_everything_is_deleted_only_if_that_is_meant(on: On, tmp_path: Path) -> None:
    """The refusal prints the digest that confirms it, for this very plan; nothing was done before."""
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("a")}), "--name", "web")
    another = ("apply", "-f", write(tmp_path, {"b.yaml": config_map("b")}), "--name", "web", "--prune")
    refused = on.run(*another)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert f"this would delete everything unit {on.namespace}/web has" in refused.stderr
    assert refused.stderr.endswith("; to take the unit away: starling delete --name web\n")
    digest = re.search(r"--confirm (sha256:[0-9a-f]{64})", refused.stderr)
    assert digest is not None
    assert (on.get("configmap", "a") is None, on.get("configmap", "b") is None) == (False, True)
    assert on.run(*another, "--confirm", "sha256:" + "0" * 64).returncode == 3
    assert f"ConfigMap {on.namespace}/a pruned" in on.ok(*another, "--confirm", digest[1])


def test_everything_as_json_when_it_is_refused(on: On, tmp_path: Path) -> None:
    """One document, with the problem and the way out in it; an option isn't taken for a digest."""
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("a")}), "--name", "web")
    nothing = ("apply", "-f", write(tmp_path, {"b.yaml": config_map("b")}), "--name", "web", "--prune")
    refused = on.run(*nothing, "-o", "json")
    assert refused.returncode == 3
    said = json.loads(refused.stdout)
    assert ([each["reason"] for each in said["problems"]], said["tasks"]) == (["WouldDeleteEverything"], [])
    assert "--confirm sha256:" in said["problems"][0]["hint"]
    swallowed = on.run(*nothing, "--confirm", "--dry-run")
    assert (swallowed.returncode, swallowed.stdout) == (2, "")
    assert "--dry-run is no digest" in swallowed.stderr
    assert on.get("configmap", "b") is None


def test_the_namespace_of_its_own_record_is_not_pruned(on: On, tmp_path: Path) -> None:
    """The unit would forget what it has; the unit as a whole may go."""
    own = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {on.namespace}}}\n"
    there = config_map("elsewhere").replace("metadata:\n", "metadata:\n  namespace: default\n")
    on.ok("apply", "-f", write(tmp_path, {"own.yaml": own, "a.yaml": there}), "--name", "web")
    refused = on.run("apply", "-f", write(tmp_path, {"a.yaml": there}), "--name", "web", "--prune")
    assert refused.returncode == 3
    assert f"but the record of unit {on.namespace}/web is in it" in refused.stderr
    live = json.loads(on.kubectl("get", "namespace", on.namespace, "-o", "json").stdout)
    assert "deletionTimestamp" not in live["metadata"]
    assert on.run("delete", "--name", "web", "--no-wait").returncode == 0


def test_dry_runs_tell_what_force_deletes(on: On, tmp_path: Path) -> None:
    """And that it deletes nothing which couldn't be made anew."""
    fixed = config_map("fixed") + "immutable: true\n"
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": fixed}), "--name", "web")
    forced = ("apply", "-f", write(tmp_path, {"a.yaml": fixed.replace("one", "two")}), "--name", "web", "--force")
    [told] = on.ok(*forced, "--dry-run")
    assert told.startswith(f"apply ConfigMap {on.namespace}/fixed: deleted and created anew: ")
    uid = on.get("configmap", "fixed")["metadata"]["uid"]
    wrong = fixed.replace("one", "two").replace("metadata:\n", "metadata:\n  labels: {a: no label}\n")
    write(tmp_path, {"a.yaml": wrong})
    for command in (forced, ("diff", *forced[1:])):
        refused = on.run(*command)
        assert refused.returncode == 3
    assert on.get("configmap", "fixed")["metadata"]["uid"] == uid


def test_confirmed_and_stopped_half_way(on: On, tmp_path: Path) -> None:
    """What is left to delete is another plan: it is refused with the digest that confirms the rest."""
    both = {"a.yaml": config_map("a"), "b.yaml": config_map("b")}
    on.ok("apply", "-f", write(tmp_path, both), "--name", "web")
    nothing = ("apply", "-f", write(tmp_path, {"nothing.yaml": "# none\n"}), "--name", "web", "--prune", "--confirm")
    refused = [on.run(*nothing, "sha256:" + "0" * 64)]
    assert on.kubectl("delete", "configmap", "a", "-n", on.namespace).returncode == 0
    digests = [re.search(r"--confirm (sha256:[0-9a-f]{64})", refused[0].stderr)]
    assert digests[0] is not None
    refused.append(on.run(*nothing, digests[0][1]))
    digests.append(re.search(r"--confirm (sha256:[0-9a-f]{64})", refused[1].stderr))
    assert digests[1] is not None
    assert [each.returncode for each in refused] == [3, 3]
    assert on.ok(*nothing, digests[1][1]) == [f"ConfigMap {on.namespace}/b pruned"]


def test_a_plan_without_its_doing(on: On, tmp_path: Path) -> None:
    """--dry-run says what would be done and why, as text and as JSON, and does none of it."""
    files = write(tmp_path, {"all.yaml": f"{config_map('a')}---\n{config_map('b', wave=1)}"})
    said = on.ok("apply", "-f", files, "--name", "web", "--dry-run")
    assert said == [
        f"apply ConfigMap {on.namespace}/a: new",
        "wait wave 0: wave 0 must be Current",
        f"apply ConfigMap {on.namespace}/b: new",
    ]
    found = json.loads("\n".join(on.ok("apply", "-f", files, "--name", "web", "--dry-run", "-o", "json")))
    assert [task["action"] for task in found["tasks"]] == ["apply", "wait", "apply"]
    assert found["tasks"][0]["object"]["name"] == "a"
    assert (on.get("configmap", "a"), on.get("configmap", "starling-web")) == (None, None)


def test_what_fails_is_named_and_the_rest_is_applied(on: On, tmp_path: Path) -> None:
    """Every problem with its hint, exit code 3; as JSON the same in one document. Mended, the same command is done."""
    nonsense = "apiVersion: nonsense.dev/v1\nkind: Nonsense\nmetadata: {name: it}\n"
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"
    files = write(tmp_path, {"a.yaml": config_map("a"), "bad.yaml": bad, "nonsense.yaml": nonsense})
    failed = on.run("apply", "-f", files, "--name", "web", "--wait")
    assert failed.returncode == 3
    assert "waiting: " not in failed.stderr
    assert f"ConfigMap {on.namespace}/a created" in failed.stdout.splitlines()
    assert re.search(r"error: apply ConfigMap .*/Not_A_Name: .*RFC 1123", failed.stderr)
    assert "nonsense.yaml:1 (document 1): Nonsense.nonsense.dev it: the cluster doesn't serve Nonsense" in failed.stderr
    assert "hint: check apiVersion and kind" in failed.stderr
    again = json.loads(on.run("apply", "-f", files, "--name", "web", "-o", "json").stdout)
    assert again["operation"]["phase"] == "Failed"
    assert {problem["reason"] for problem in again["problems"]} == {"Invalid", "UnknownKind"}
    done = on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("a")}), "--name", "web", "-o", "json")
    found = json.loads("\n".join(done))
    assert (found["operation"]["phase"], found["readiness"], found["problems"]) == ("Succeeded", "Current", [])
    assert found["objects"] == [
        {
            "group": "", "kind": "ConfigMap", "namespace": on.namespace, "name": "a",
            "outcome": "unchanged", "readiness": "Current", "message": "",
        }
    ]  # fmt: skip


def test_waiting_has_an_end(on: On, tmp_path: Path) -> None:
    """Without --wait applying is enough; with it, time runs out, and what isn't ready is named."""
    files = write(tmp_path, {"web.yaml": deployment("web")})
    applied = on.run("apply", "-f", files, "--name", "web")
    assert (applied.returncode, applied.stdout) == (0, f"Deployment.apps {on.namespace}/web created\n")
    assert applied.stderr == "web: 1 created\n"
    late = on.run("apply", "-f", files, "--name", "web", "--wait", "--timeout", "1s")
    assert (late.returncode, late.stdout) == (4, "")
    assert f"web isn't ready after 1s: Deployment.apps {on.namespace}/web is InProgress: " in late.stderr


@pytest.mark.parametrize(
    ("by", "more"),
    [(signal.SIGINT, ()), (signal.SIGINT, ("-o", "json")), (signal.SIGTERM, ())],
    ids=["Ctrl-C", "Ctrl-C and JSON", "SIGTERM"],
)
async def test_interrupted_it_carries_on(
    on: On, tmp_path: Path, environment: dict[str, str], by: signal.Signals, more: tuple[str, ...]
) -> None:
    """Ctrl-C while a wave is waited for is 130, no half a document; the next run finds what is done, does the rest.

    SIGTERM is the same, but 143.
    """
    files = write(tmp_path, {"web.yaml": deployment("web"), "later.yaml": config_map("later", wave=1)})
    command = ("starling", "apply", *on.where, "-f", files, "--name", "web", *more)
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await until(lambda: on.get("deployment", "web") is not None)
    process.send_signal(by)
    said, told = await process.communicate()
    ending = ["interrupted" if by is signal.SIGINT else "ended", "hint: the same command carries on from here"]
    assert (process.returncode, told.decode().splitlines()[-2:]) == (128 + by, ending)
    assert said.decode().splitlines() == ([] if more else [f"Deployment.apps {on.namespace}/web created"])
    assert on.get("configmap", "later") is None
    patch = ("-n", on.namespace, "--subresource=status", "--type=merge", "-p", json.dumps({"status": READY}))
    assert on.kubectl("patch", "deployment", "web", *patch).returncode == 0
    again = on.ok("apply", "-f", files, "--name", "web", "--wait", "--timeout", "30s")
    assert again == [f"Deployment.apps {on.namespace}/web unchanged", f"ConfigMap {on.namespace}/later created"]


async def test_two_at_once(on: On, tmp_path: Path, environment: dict[str, str]) -> None:
    """While one waits for a wave another comes with other files: the newer one is done, the older does no more."""
    slow = {"web.yaml": deployment("web"), "later.yaml": config_map("later", "old", wave=1)}
    command = ("starling", "apply", *on.where, "-f", write(tmp_path, slow), "--name", "web")
    older = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await until(lambda: on.get("deployment", "web") is not None)
    on.ok(
        "apply",
        "-f",
        write(tmp_path, {"later.yaml": config_map("later", "new")}),
        "--name",
        "web",
        "--prune",
        "--allow-empty",
    )
    _, told = await older.communicate()
    assert older.returncode == 3, told
    assert f"another process writes the record of unit {on.namespace}/web, ConfigMap ".encode() in told
    assert on.get("configmap", "later")["data"] == {"value": "new"}
    assert on.get("deployment", "web") is None
    assert on.run("apply", "-f", str(tmp_path), "--name", "web").stderr == "web: 1 unchanged\n"


@pytest.mark.parametrize("more", [(), ("--wait",), ("-o", "json")], ids=" ".join)
async def test_vetoed_before_it_began(
    on: On, tmp_path: Path, environment: dict[str, str], more: tuple[str, ...]
) -> None:
    """That an earlier apply succeeded is no success of this one, which another process kept from anything."""
    on.ok("apply", "-f", write(tmp_path, {"a.yaml": config_map("a")}), "--name", "web")
    files = write(tmp_path, {"a.yaml": config_map("a", "two")})
    async with traffic(cluster(environment)) as counted:
        take_record(counted, on, "starling-web")
        apply = ("apply", "-f", files, "--name", "web", *more)
        code, said = await run_through(counted, environment, on, tmp_path, *apply)
    assert on.get("configmap", "a")["data"] == {"value": "one"}
    assert (code, f"another process writes the record of unit {on.namespace}/web, ConfigMap " in said) == (3, True), (
        said
    )


@pytest.mark.parametrize("more", [(), ("--wait",), ("-o", "json")], ids=" ".join)
async def test_failed_before_it_began(
    on: On, tmp_path: Path, environment: dict[str, str], more: tuple[str, ...]
) -> None:
    """Nor if a sync can't even be planned: here whether another unit wants an object, whose record is spoilt."""
    both = write(tmp_path, {"a.yaml": config_map("a"), "b.yaml": config_map("b"), "c.yaml": config_map("c")})
    on.ok("apply", "-f", f"{both}/a.yaml", "-f", f"{both}/c.yaml", "--name", "one")
    on.ok("apply", "-f", f"{both}/c.yaml", "--name", "one")
    on.ok("apply", "-f", f"{both}/b.yaml", "--name", "two")
    async with traffic(cluster(environment)) as counted:
        take_record(counted, on, "starling-one", "inventory", "nonsense")
        apply = ("apply", "-f", f"{both}/a.yaml", "-f", f"{both}/b.yaml", "--name", "two", *more)
        code, said = await run_through(counted, environment, on, tmp_path, *apply, "--timeout", "30s")
    assert (code, "starling-one isn't a record that we wrote" in said) == (3, True), said


def test_an_object_of_another_unit(on: On, tmp_path: Path) -> None:
    """It is refused with that unit's name, until that unit lets go of it."""
    files = write(tmp_path, {"a.yaml": config_map("a"), "b.yaml": config_map("b")})
    on.ok("apply", "-f", files, "--name", "one")
    mine = ("apply", "-f", f"{files}/a.yaml", "--name", "two")
    refused = on.run(*mine)
    assert refused.returncode == 3
    assert f"it belongs to unit {on.namespace}/one, which still renders it" in refused.stderr
    on.ok("apply", "-f", f"{files}/b.yaml", "--name", "one")
    assert on.ok(*mine) == [f"ConfigMap {on.namespace}/a changed"]
    assert on.run("apply", "-f", f"{files}/b.yaml", "--name", "one", "--prune").stdout == ""
    assert on.get("configmap", "a") is not None


def test_from_stdin_beside_a_file(on: On, tmp_path: Path) -> None:
    """Several sources are one set."""
    files = write(tmp_path, {"a.yaml": config_map("a")})
    done = on.run("apply", "-f", f"{files}/a.yaml", "-f", "-", "--name", "web", stdin=config_map("b"))
    assert sorted(done.stdout.splitlines()) == [f"ConfigMap {on.namespace}/{name} created" for name in ("a", "b")]


WRONG: dict[str, tuple[dict[str, str], list[str], str]] = {
    "no YAML": ({"a.yaml": "a: [\n"}, [], "a.yaml:"),
    "no object": ({"a.yaml": "a: 1\n"}, [], "apiVersion is missing"),
    "twice the same": ({"a.yaml": config_map("a"), "b.yaml": config_map("a")}, [], "ConfigMap a is also at"),
    "nothing there": ({".hidden.yaml": config_map("a"), "notes.txt": "a"}, [], "has no manifests"),
    "no such folder": ({"a.yaml": config_map("a")}, ["-f", "/nowhere"], "there is no file or folder /nowhere"),
    "a name that can't be": ({"a.yaml": config_map("a")}, ["--name", "Not_A_Name"], "can't be a unit's name"),
    "no such kubeconfig": ({"a.yaml": config_map("a")}, ["--kubeconfig", "/nowhere"], "no kubeconfig at /nowhere"),
    "no such context": ({"a.yaml": config_map("a")}, ["--context", "nowhere"], "nowhere"),
    "no duration": ({"a.yaml": config_map("a")}, ["--timeout", "soon"], "'soon' is no duration"),
}


@pytest.mark.parametrize(("files", "more", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_before_anything_is_sent(
    on: On, tmp_path: Path, files: dict[str, str], more: list[str], told: str
) -> None:
    """Exit code 2, and the place that is wrong."""
    done = on.run("apply", "-f", write(tmp_path, files), "--name", "wrong", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_links_lead_about_in_the_folder_but_not_out_of_it(on: On, tmp_path: Path) -> None:
    """A link to a file in the folder is that file; one to anywhere else is refused by name."""
    (tmp_path / "in").mkdir()
    files = write(tmp_path / "in", {".data/a.yaml": config_map("a")})
    (tmp_path / "in" / "a.yaml").symlink_to(tmp_path / "in" / ".data" / "a.yaml")
    assert len(on.ok("apply", "-f", files, "--name", "web")) == 1
    (tmp_path / "out.yaml").write_text(config_map("out"))
    (tmp_path / "in" / "b.yaml").symlink_to(tmp_path / "out.yaml")
    refused = on.run("apply", "-f", files, "--name", "web")
    assert refused.returncode == 2
    assert "the link b.yaml leads out of" in refused.stderr
