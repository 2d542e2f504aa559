"""Hostile kustomizations fetch and run nothing: they are looked through, and should that miss something, a run can't.

One round of the differential test is some hundred texts.
"""

import json
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starling.programs import Finished, run
from starling.rendering import NotAllowed, Renderer, RenderError, Request, ToolFailed, Tools
from starling.rendering.kustomizations import is_remote
from starling.rendering.kustomize import run_kustomize
from starling.rendering.running import Job, Limits, environment
from tests.integration.rendering.conftest import Web
from tests.rounds import ROUNDS
from tests.unit.rendering.test_kustomizations_are_looked_through import EXEC, FIELDS, REMOTE
from tests.unit.rendering.trees import config_map, planted

BASE = "resources: [a.yaml]\n"


def kustomization(root: Path, text: str) -> Path:
    """A tree with that kustomization and an object."""
    return planted(root, {"app/kustomization.yaml": text, "app/a.yaml": config_map("a")})


def job(tools: Tools, root: Path, own: Path) -> Job:
    """A run of kustomize on that tree."""
    own.mkdir(exist_ok=True)
    return Job(tools.kustomize, root, root / "app", own, Limits())


@pytest.mark.parametrize("field", [field for field in FIELDS if field not in ("components", "patches of old")])
async def test_urls(renderer: Renderer, tools: Tools, tmp_path: Path, web: Web, field: str) -> None:
    """A URL in any field is refused by name; kustomize by itself couldn't fetch it; allowed, it does."""
    text = FIELDS[field].format(f"{web.url}/x.yaml")
    root = kustomization(tmp_path / "tree", text if field.casefold() == "resources" else BASE + text)
    with pytest.raises(NotAllowed, match=r"^app/kustomization\.yaml: .*/x\.yaml, which is remote"):
        await renderer.render(root, None, Request(path="app"))
    with pytest.raises(ToolFailed, match="kustomize can't build app"):
        await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=False)
    assert web.asked == []
    web.files["/x.yaml"] = config_map("remote").encode()
    with suppress(RenderError):  # not everywhere is a ConfigMap what is wanted
        await renderer.render(root, None, Request(path="app", allow_remote=True))
    assert web.asked[:1] == ["/x.yaml"]


async def test_what_is_allowed_is_rendered(renderer: Renderer, tmp_path: Path, web: Web) -> None:
    """Who may fetch a resource gets it."""
    web.files["/x.yaml"] = config_map("remote").encode()
    root = kustomization(tmp_path / "tree", f"resources: [a.yaml, '{web.url}/x.yaml']")
    rendered = await renderer.render(root, None, Request(path="app", allow_remote=True))
    assert [manifest.name for manifest in rendered.manifests] == ["a", "remote"]


@pytest.mark.parametrize("text", REMOTE)
async def test_repositories(renderer: Renderer, tools: Tools, tmp_path: Path, text: str) -> None:
    """Every form of a repository is refused by name, and kustomize by itself finds nothing to clone it with."""
    root = kustomization(tmp_path / "tree", f"resources: [{json.dumps(text)}]")
    with pytest.raises(NotAllowed, match="which is remote"):
        await renderer.render(root, None, Request(path="app"))
    with pytest.raises(ToolFailed, match="kustomize can't build app") as raised:
        await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=False)
    assert str(tmp_path) not in raised.value.message
    assert list((tmp_path / "own").iterdir()) == []


async def test_a_repository_of_this_machine(renderer: Renderer, tools: Tools, tmp_path: Path) -> None:
    """A file:// URL would clone any repository that we can read; nobody gets that, be it refused or not."""
    repository = planted(tmp_path / "repository", {"kustomization.yaml": BASE, "a.yaml": config_map("cloned")})
    where = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "x")):
        done = await run("git", *command, environment=where, within=30, cwd=repository)
        assert done.code == 0, done.complaints
    root = kustomization(tmp_path / "tree", f"resources: ['file://{repository}']")
    for allow_remote in (False, True):
        with pytest.raises(NotAllowed, match="which is on the machine that renders"):
            await renderer.render(root, None, Request(path="app", allow_remote=allow_remote))
    with pytest.raises(ToolFailed, match="no 'git' program on path"):
        await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=False)
    with pytest.raises(ToolFailed, match="transport 'file' not allowed"):
        await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=True)
    assert list((tmp_path / "runs").iterdir()) == []


async def test_keys_of_this_machine(renderer: Renderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may use the network has no ssh, which would find this machine's keys, and none of its git configuration."""
    for program in ("ssh", "helper"):
        planted(tmp_path, {program: f"#!/bin/sh\necho {program} >> {tmp_path}/called\nexit 1\n"})
        (tmp_path / program).chmod(0o755)
    planted(
        tmp_path, {"gitconfig": f"[core]\nsshCommand = {tmp_path}/helper\n[credential]\nhelper = {tmp_path}/helper\n"}
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    for number, url in enumerate(("ssh://git@git.example/org/x.git?ref=main", "git@git.example:org/x.git?ref=main")):
        root = kustomization(tmp_path / f"tree-{number}", f"resources: ['{url}']")
        with pytest.raises(ToolFailed, match="transport 'ssh' not allowed"):
            await renderer.render(root, None, Request(path="app", allow_remote=True))
    around = environment(tmp_path / "home", network=True)
    done = await run("git", "config", "--list", environment=around, within=30, cwd=tmp_path)
    assert (done.code, done.output) == (0, b"")
    assert not (tmp_path / "called").exists()


PIECES = st.lists(
    st.sampled_from(
        [
            *("http://", "https://", "ssh://", "file://", "git://", "git::", "HTTPS://", "https:", "s3::", "gh:", "//"),
            *("git@", "a-1@", "u:p@", "github.com", "GitHub.com", "gitlab.com", "host.example", "127.0.0.1:1"),
            *("/", ":", ".git", "_git/", "org", "repo", "?ref=x", "..", ".", "@", " ", "\n", "-", "a", "1", "%2f", "#"),
        ]
    ),
    min_size=1,
    max_size=8,
).map("".join)
TRIED = re.compile(r"cgihttpproxy|proxyconnect|dial tcp|lookup ")
"""How a kustomize that isn't let says that it wanted to fetch something."""


@pytest.mark.rounds
@settings(max_examples=100 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(text=PIECES, field=st.sampled_from(["resources", "components", "bases"]))
async def test_whatever_kustomize_would_fetch_counts_as_remote(
    tools: Tools, tmp_path_factory: pytest.TempPathFactory, text: str, field: str
) -> None:
    """If kustomize goes for git or the network because of a text, we call that text remote."""
    folder = tmp_path_factory.mktemp("differential")
    root = kustomization(folder, f"{field}: [{json.dumps(text)}]")
    (folder / "git").write_text(f"#!/bin/sh\necho called >> {folder}/called\nexit 1\n")
    (folder / "git").chmod(0o755)
    around = {**environment(None, network=False), "PATH": str(folder)}
    done: Finished = await run(*tools.kustomize, str(root / "app"), environment=around, within=60)
    tried = (folder / "called").exists() or TRIED.search(done.complaints)
    assert not tried or is_remote(text), done.complaints


async def test_the_differential_test_can_tell(tools: Tools, tmp_path: Path) -> None:
    """A text that is known to be fetched is seen to be, by git and by HTTP."""
    (tmp_path / "git").write_text(f"#!/bin/sh\necho called >> {tmp_path}/called\nexit 1\n")
    (tmp_path / "git").chmod(0o755)
    around = {**environment(None, network=False), "PATH": str(tmp_path)}
    for text in ("git@host.example:org/repo.git", "https://host.example/org/repo"):
        root = kustomization(tmp_path, f"resources: ['{text}']")
        done = await run(*tools.kustomize, str(root / "app"), environment=around, within=60)
        assert (tmp_path / "called").exists() is text.startswith("git@") or TRIED.search(done.complaints)
        (tmp_path / "called").unlink(missing_ok=True)


@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
async def test_programs_are_not_run(renderer: Renderer, tools: Tools, tmp_path: Path, field: str) -> None:
    """A function that is a program of the repository is refused, by us and by kustomize as we call it."""
    root = kustomization(tmp_path / "tree", f"{BASE}{field}: [run.yaml]\n")
    planted(root, {"app/run.yaml": EXEC, "app/run.sh": f"#!/bin/sh\ntouch {tmp_path}/was-run\n"})
    (root / "app/run.sh").chmod(0o755)
    for allow_remote in (False, True):
        with pytest.raises(NotAllowed, match=r"app/run\.yaml: Runner is a plugin or function"):
            await renderer.render(root, None, Request(path="app", allow_remote=allow_remote))
        with pytest.raises(ToolFailed):
            await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=allow_remote)
    assert not (tmp_path / "was-run").exists()


async def test_charts_are_refused_by_name(renderer: Renderer, tools: Tools, tmp_path: Path, web: Web) -> None:
    """A chart in a kustomization is refused with a way out, and kustomize as we call it refuses it too."""
    root = kustomization(tmp_path / "tree", f"{BASE}helmCharts: [{{name: x, repo: '{web.url}', version: 1.0.0}}]")
    with pytest.raises(NotAllowed, match=r"app/kustomization\.yaml: helmcharts would have kustomize run helm"):
        await renderer.render(root, None, Request(path="app", allow_remote=True))
    with pytest.raises(ToolFailed, match="must specify --enable-helm"):
        await run_kustomize(job(tools, root, tmp_path / "own"), allow_remote=True)
    assert web.asked == []


async def test_files_outside_stay_there(renderer: Renderer, tmp_path: Path) -> None:
    """Bases beside are fine; files beside are against kustomize's own rule; anything outside is refused by us."""
    root = planted(
        tmp_path / "tree",
        {
            "app/kustomization.yaml": "resources: [../base]",
            "base/kustomization.yaml": BASE,
            "base/a.yaml": config_map("a"),
            "beside/kustomization.yaml": "resources: [../base/a.yaml]",
            "linked/kustomization.yaml": "resources: [a.yaml]",
            "linked/a.yaml": f"-> {tmp_path}/secret.yaml",
            "out/kustomization.yaml": "configMapGenerator: [{name: x, files: [/etc/hostname]}]",
        },
    )
    planted(tmp_path, {"secret.yaml": config_map("secret")})
    rendered = await renderer.render(root, None, Request(path="app"))
    assert [manifest.name for manifest in rendered.manifests] == ["a"]
    with pytest.raises(ToolFailed, match=r"file 'base/a\.yaml' is not in or below 'beside'") as raised:
        await renderer.render(root, None, Request(path="beside"))
    assert "as a base" in str(raised.value.hint)
    for path in ("linked", "out"):
        with pytest.raises(NotAllowed, match=rf"^{path}/kustomization\.yaml: .* leads out of the repository"):
            await renderer.render(root, None, Request(path=path))
