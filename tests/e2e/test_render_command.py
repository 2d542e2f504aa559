"""`starling render` and `source check`, and the same places given to apply and diff."""

import asyncio
import json
import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from starling.local import GitServer
from tests.e2e.applying import On, config_map, write
from tests.e2e.conftest import Starling
from tests.integration.rendering.conftest import Web
from tests.integration.sources.repositories import Repository

CHART = {
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/values.yaml": "colour: red\nsize: 1\n",
    "charts/web/templates/web.yaml": (
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\n"
        'data:\n  colour: {{ .Values.colour }}\n  size: "{{ .Values.size }}"\n'
        "  kubernetes: {{ .Capabilities.KubeVersion.Version }}\n"
        '  serves: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"\n'
    ),
}
KUSTOMIZATION = {
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "base/a.yaml": (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {cluster: "${CLUSTER}", ring: "${RING:-stable}"}\n'
    ),
    "overlays/eu/kustomization.yaml": "resources: [../../base]\nnamePrefix: eu-\n",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with a chart and a kustomization, tagged."""
    made = Repository(tmp_path_factory.mktemp("repositories") / "app.git")
    made.commit({**CHART, **KUSTOMIZATION})
    made.tag("v1.0.0")
    made.commit({"charts/web/values.yaml": "colour: blue\nsize: 1\n"})
    return made


@pytest.fixture(scope="module")
def on(starling: Starling, kubectl: list[str]) -> On:
    """Commands on a bare cluster."""
    up = starling("local", "up", "render")
    assert up.returncode == 0, up.stderr
    return On(starling, kubectl, up.stdout.strip(), "shop")


def objects(text: str) -> dict[str, dict[str, object]]:
    """What was printed, by name."""
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(text)}


def test_an_overlay_may_use_what_its_work_tree_has(starling: Starling, repository: Repository) -> None:
    """Variables come in, defaults where none is given."""
    overlay = str(repository.work / "overlays/eu")
    done = starling("render", overlay, "--substitute", "CLUSTER=eu-1", "--strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert objects(done.stdout)["eu-a"]["data"] == {"cluster": "eu-1", "ring": "stable"}
    missing = starling("render", overlay, "--strict")
    assert missing.returncode == 2
    assert "CLUSTER is not set" in missing.stderr
    assert "ConfigMap eu-a" in missing.stderr


def test_a_chart_takes_values_and_settings(starling: Starling, repository: Repository, tmp_path: Path) -> None:
    """Files in order, then what is set."""
    (tmp_path / "prod.yaml").write_text("colour: green\nsize: 2\n")
    place = str(repository.work / "charts/web")
    options = ("--values", str(tmp_path / "prod.yaml"), "--set", "size=3", "--kube-version", "1.30.1", "-n", "shop")
    done = starling("render", place, *options, "--release", "live")
    assert done.returncode == 0, done.stderr
    assert objects(done.stdout)["live"]["data"] == {
        "colour": "green", "size": "3", "kubernetes": "v1.30.1", "serves": "false",
    }  # fmt: skip
    piped = starling("render", place, "--values", "-", stdin="colour: black\n")
    assert objects(piped.stdout)["web"]["data"]["colour"] == "black"  # type: ignore[index]


def test_a_repository_at_a_version(starling: Starling, repository: Repository) -> None:
    """By branch, tag, range and commit; without a ref its main branch. It is said which version that is."""
    first = repository.git("rev-parse", "v1.0.0").strip()
    for ref, colour, revision in (
        ((), "blue", f"main@sha1:{repository.head()}"),
        (("--ref", "main"), "blue", f"main@sha1:{repository.head()}"),
        (("--ref", "v1.0.0"), "red", f"v1.0.0@sha1:{first}"),
        (("--ref", ">=1.0.0 <2"), "red", f"v1.0.0@sha1:{first}"),
        (("--ref", first), "red", f"sha1:{first}"),
        (("--ref", "branch=main"), "blue", f"main@sha1:{repository.head()}"),
    ):
        done = starling("render", repository.url, *ref, "--path", "charts/web")
        assert objects(done.stdout)["web"]["data"]["colour"] == colour  # type: ignore[index]
        assert done.stderr == f"{repository.url} at {revision}\n"
        assert starling("source", "check", repository.url, *ref).stdout == f"{revision}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ("source", "check", "{url}", "--ref", "nope"),
            3,
            "there is no branch nope; there are main; there is no tag nope; there are v1.0.0",
        ),
        (("source", "check", "{url}", "--ref", ">=9"), 3, "none of 1 tags is a version in >=9; there are v1.0.0"),
        (("source", "check", "{url}", "--ref", ""), 2, "--ref is empty"),
        (("source", "check", "{url}", "--ref", "0" * 40), 3, "not our ref"),
        (("source", "check", "{url}", "--credentials", "{work}"), 2, "has none of the files username, password"),
        (("render", "{work}/charts/web", "--values", "nope.yaml"), 2, "--values nope.yaml is no file"),
        (("source", "check", "{url}", "--verify", "nope.pub"), 2, "--verify nope.pub is no file"),
        (("source", "check", "ext::sh"), 2, "is no address of a git repository"),
        (("source", "check", "https://me:hunter2@git.example/x"), 2, "belong in the credentials"),
        (("render", "{url}", "--path", "charts/wbe"), 2, "there is charts/web"),
        (("render", "{work}/overlays/eu", "--ref", "main"), 2, "are for repositories"),
        (("render", "{work}/overlays/eu", "--substitute", "CLUSTER"), 2, "--substitute CLUSTER has no value"),
        (("render", "{work}/overlays/eu", "--set", "a=b"), 2, "takes no values"),
        (("render", "{work}/nothing"), 2, "there is no file or folder"),
    ],
)
def test_what_is_wrong_is_said(
    starling: Starling, repository: Repository, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """With an exit code that tells a wrong call from a failure, and no secret."""
    done = starling(*(each.format(url=repository.url, work=repository.work) for each in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "hunter2" not in done.stderr


def test_credentials_are_files(starling: Starling, repository: Repository, tmp_path: Path) -> None:
    """As a Secret that is mounted; keys to verify with are files, too."""
    (tmp_path / "username").write_text("me\n")
    wrong = starling("source", "check", repository.url, "--credentials", str(tmp_path))
    assert wrong.returncode == 2
    assert "username without a password" in wrong.stderr
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(keygen, check=True, env={"PATH": os.environ["PATH"]})
    unsigned = starling("source", "check", repository.url, "--verify", str(tmp_path / "key.pub"))
    assert unsigned.returncode == 3
    assert "isn't signed" in unsigned.stderr


def test_apply_and_diff_take_the_same(on: On, repository: Repository) -> None:
    """A chart of a repository is told of the cluster that it goes to, and released under the unit's name."""
    place = ("-f", repository.url, "--ref", "v1.0.0", "--path", "charts/web", "--name", "live", "--set", "size=7")
    assert on.run("diff", *place).returncode == 1
    assert on.ok("apply", *place) == [f"ConfigMap {on.namespace}/live created"]
    live = on.get("configmap", "live")["data"]
    assert (live["colour"], live["size"], live["serves"]) == ("red", "7", "true")
    assert live["kubernetes"].startswith("v1.")
    assert on.run("diff", *place).returncode == 0
    overlay = ("-f", str(repository.work / "overlays/eu"), "--name", "overlay", "--substitute", "CLUSTER=eu-1")
    assert on.ok("apply", *overlay) == [f"ConfigMap {on.namespace}/eu-a created"]
    assert on.get("configmap", "eu-a")["data"] == {"cluster": "eu-1", "ring": "stable"}


TOLD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "other": ("charts/web", "say which it is", ("--package", "helm", "--release", "other")),
    "remote": ("fetches", "which is remote", ("--allow-remote",)),
}


@pytest.mark.parametrize("name", TOLD)
def test_apply_and_diff_can_be_told_what_render_is_told(on: On, tmp_path: Path, name: str) -> None:
    """Which of two packages is meant and what its release is called; that resources may come from elsewhere."""
    place, refusal, options = TOLD[name]
    with closing(Web()) as web:
        web.files["/x.yaml"] = config_map("remote").encode()
        more = {
            "charts/web/kustomization.yaml": "resources: [templates/web.yaml]\n",
            "fetches/kustomization.yaml": f"resources: ['{web.url}/x.yaml']\n",
        }
        wanted = ("-f", write(tmp_path / "files", {**CHART, **more}), "--path", place, "--name", f"told-{name}")
        for command, code in (("diff", 3), ("apply", 2)):
            refused = on.run(command, *wanted)
            assert (refused.returncode, refusal in refused.stderr) == (code, True), refused.stderr
        assert on.run("diff", *wanted, *options).returncode == 1
        assert on.ok("apply", *wanted, *options) == [f"ConfigMap {on.namespace}/{name} created"]
        assert on.run("diff", *wanted, *options).returncode == 0


def test_a_name_that_is_a_branch_and_a_tag(starling: Starling, tmp_path: Path) -> None:
    """Which is meant has to be said."""
    both = Repository(tmp_path / "repositories" / "both.git")
    both.commit({"a.yaml": "kind: A\n"})
    both.tag("main")
    done = starling("source", "check", both.url, "--ref", "main")
    assert done.returncode == 2
    assert "main is a branch and a tag\nhint: say branch=main or tag=main\n" in done.stderr
    assert starling("source", "check", both.url, "--ref", "tag=main").stdout == f"main@sha1:{both.head()}\n"


def test_the_unit_knows_its_version_and_stdin_must_have_something(on: On, repository: Repository) -> None:
    """What runs there can be asked for later; a pipe that failed isn't taken for nothing."""
    on.ok("apply", "-f", repository.url, "--path", "charts/web", "--name", "versioned")
    record = json.loads(on.get("configmap", "starling-versioned")["data"]["state"])
    assert record["revision"] == f"main@sha1:{repository.head()}"
    empty = on.run("apply", "-f", "-", "--name", "versioned", stdin="")
    assert (empty.returncode, "stdin has no manifests" in empty.stderr) == (2, True)


async def test_time_runs_out_for_git_too(on: On, environment: dict[str, str]) -> None:
    """A server that never answers holds nobody up for longer than was allowed."""

    class Silent(GitServer):
        async def _serve(self, request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            return await super()._serve(request)

    async with Silent(Path("/")) as server:
        for command in ("apply", "diff"):
            process = await asyncio.create_subprocess_exec(
                *("starling", command, *on.where, "-f", f"{server.url}/app.git", "--name", "late", "--timeout", "1s"),
                env=environment,
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await asyncio.wait_for(process.communicate(), 40)
            assert process.returncode == 4, said
