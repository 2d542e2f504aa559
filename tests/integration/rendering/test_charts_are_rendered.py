"""Charts: what they are told, what they bring along, and what is kept from them."""

import hashlib
import json
import subprocess
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from starling.errors import InputError
from starling.objects import ManifestError
from starling.programs import run
from starling.rendering import (
    NotAllowed,
    Renderer,
    RenderError,
    Request,
    ToolFailed,
    Tools,
    ValuesFrom,
    resolve,
)
from starling.rendering.archives import packed
from starling.rendering.charts import list_chart
from starling.rendering.running import environment
from tests.integration.rendering.conftest import Web
from tests.rounds import ROUNDS
from tests.unit.rendering.trees import config_map, planted

META = "apiVersion: v2\nname: {}\nversion: 1.0.0\n"
TOLD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: told
data:
  release: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
  api: {{ .Capabilities.APIVersions.Has "example.com/v1/Thing" | quote }}
  values: {{ omit .Values "global" "lib" "other" | toJson | quote }}
  lookup: {{ lookup "v1" "Secret" "default" "x" | toJson | quote }}
  host: {{ getHostByName "localhost" | quote }}
"""


def chart(name: str = "app", **files: str) -> dict[str, str]:
    """A chart's files; names are written with __ for / and _ for a dot."""
    return {f"{name}/Chart.yaml": META.format(name)} | {
        f"{name}/{path.replace('__', '/').replace('_', '.')}": text for path, text in files.items()
    }


async def told(renderer: Renderer, root: Path, **request: Any) -> dict[str, Any]:
    """What the chart says that it was told."""
    rendered = await renderer.render(root, None, Request(**{"path": "app", **request}))
    (data,) = (manifest.content["data"] for manifest in rendered.manifests if manifest.name == "told")
    return {**data, "values": json.loads(data["values"])} if "values" in data else data


async def test_what_a_chart_is_told(renderer: Renderer, tmp_path: Path) -> None:
    """Names, versions and values are the request's; there is no cluster and no network to ask."""
    root = planted(
        tmp_path / "tree", chart(templates__told_yaml=TOLD, values_yaml="a: 1\nmap: {one: 1, two: 2}\nlist: [1]\n")
    )
    found = await told(renderer, root)
    assert (found["release"], found["namespace"], found["kube"], found["api"]) == ("app", "default", "v1.36.0", "false")
    assert (found["lookup"], found["host"]) == ("{}", "")
    found = await told(
        renderer,
        root,
        release_name="web",
        namespace="apps",
        kube_version="v1.30.2",
        api_versions=["v1", "example.com/v1/Thing"],
        values=[{"a": 2, "map": {"z": "yes"}, "list": [2, 3]}, {"a": None, "map": {"one": "1e3", "two": None}}],
        settings=["map.w=7"],
    )
    assert (found["release"], found["namespace"], found["kube"], found["api"]) == ("web", "apps", "v1.30.2", "true")
    assert found["values"] == {"map": {"one": "1e3", "z": "yes", "w": 7}, "list": [2, 3]}


async def test_hooks_and_crds_are_kept_and_tests_are_not(renderer: Renderer, tmp_path: Path) -> None:
    """Hooks are objects with their annotations; origins are the templates that they come from."""
    annotated = config_map("{}").replace("  name", "  annotations: {{helm.sh/hook: {}}}\n  name")
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.example.com}\n"
    root = planted(
        tmp_path / "tree",
        chart(
            templates__a_yaml=config_map("a") + "---\n" + config_map("b"),
            templates__hook_yaml=annotated.format("pre-install", "hook"),
            templates__tests__t_yaml=annotated.format("test", "test"),
            crds__crd_yaml=crd + "---\n" + crd.replace("x.", "y."),
        ),
    )
    rendered = await renderer.render(root, None, Request(path="app"))
    assert [(manifest.name, str(manifest.origin)) for manifest in rendered.manifests] == [
        ("x.example.com", "app/crds/crd.yaml"),
        ("y.example.com", "app/crds/crd.yaml"),
        ("a", "app/templates/a.yaml"),
        ("b", "app/templates/a.yaml"),
        ("hook", "app/templates/hook.yaml"),
    ]
    assert rendered.manifests[-1].annotations == {"helm.sh/hook": "pre-install"}


def depending(name: str, repository: str, version: str = ">=1.0.0") -> str:
    """A Chart.yaml with a dependency on lib."""
    return META.format(name) + f"dependencies: [{{name: lib, version: '{version}', repository: '{repository}'}}]\n"


async def names(renderer: Renderer, root: Path, **request: Any) -> set[str]:
    """The names of what the chart in app renders to."""
    return {manifest.name for manifest in (await renderer.render(root, None, Request(path="app", **request))).manifests}


async def test_charts_of_the_same_tree(renderer: Renderer, tmp_path: Path) -> None:
    """A dependency by file:// is used as if it had been built, with its own, and ignoring what it ignores."""
    root = planted(
        tmp_path / "tree",
        {
            **chart(templates__a_yaml=config_map("a")),
            "app/Chart.yaml": depending("app", "file://../libs/lib"),
            **chart(
                "libs/lib", templates__b_yaml=config_map("b"), templates__ignored_yaml="[", _helmignore="ignored.yaml"
            ),
            "libs/lib/Chart.yaml": META.format("lib")
            + "dependencies: [{name: base, version: 1.x, repository: 'file://../base'}]\n",
            **chart("libs/base", templates__c_yaml="{{ .Values.x }}" + config_map("c"), values_yaml="x: ''"),
            "libs/base/Chart.yaml": META.format("base"),
        },
    )
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert await names(renderer, root) == {"a", "b", "c"}
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    for folder in (root / "libs/lib", root / "app"):
        command = (*renderer.tools.helm, "dependency", "build", "--skip-refresh", str(folder))
        done = await run(*command, environment=environment(tmp_path / "home", network=False), within=60)
        assert done.code == 0, done.complaints
    assert await names(renderer, root) == {"a", "b", "c"}  # and Helm's own way gives the same


@pytest.mark.parametrize(
    ("repository", "version", "problem"),
    [
        ("file://../../outside", "1.x", r"lib at file://\.\./\.\./outside leads out of the repository"),
        ("file:///etc", "1.x", "lib at file:///etc leads out of the repository"),
        ("file://../none", "1.x", r"isn't there: none has no Chart\.yaml"),
        ("file://../lib", "2.x", r"is wanted at version 2\.x, but it is 1\.0\.0 there"),
        ("file://../other", "1.x", "is called other there"),
        ("file://.", "1.x", "the chart depends on itself"),
        ("https://example.com/charts", "1.x", "lib at https://example.com/charts isn't in app/charts"),
        ("oci://example.com/charts", "1.x", "lib at oci://example.com/charts isn't in app/charts"),
        ("", "1.x", "lib with no repository isn't in app/charts"),
    ],
)
async def test_dependencies_that_cannot_be_had(
    renderer: Renderer, tmp_path: Path, repository: str, version: str, problem: str
) -> None:
    """Each says what is missing, and where it was looked for."""
    planted(tmp_path, chart("outside"))
    files = {**chart("app"), **chart("lib"), **chart("other"), "app/Chart.yaml": depending("app", repository, version)}
    root = planted(tmp_path / "tree", files)
    with pytest.raises(RenderError, match=rf"^app/Chart\.yaml: .*{problem}"):
        await names(renderer, root)


@pytest.mark.parametrize("how", ["folder", "archive"])
async def test_vendored_charts_are_used(renderer: Renderer, tmp_path: Path, how: str) -> None:
    """What is in charts/ is used, whatever repository it came from."""
    lib = {"Chart.yaml": META.format("lib"), "templates/b.yaml": config_map("b")}
    files = {
        **chart(templates__a_yaml=config_map("a")),
        "app/Chart.yaml": depending("app", "https://example.com/charts"),
    }
    root = planted(tmp_path / "tree", files)
    if how == "folder":
        planted(root / "app/charts/other-name", lib)
    else:
        (root / "app/charts").mkdir()
        (root / "app/charts/lib-1.0.0.tgz").write_bytes(
            packed("lib", ((path, text.encode()) for path, text in lib.items()))
        )
    assert await names(renderer, root) == {"a", "b"}


async def test_remote_charts_for_those_who_may(renderer: Renderer, tmp_path: Path, web: Web) -> None:
    """Allowed, a dependency is fetched, at the version of the lock; not allowed, nobody is asked."""
    entries = ""
    for version in ("1.0.0", "1.1.0"):
        text = {
            "Chart.yaml": META.format("lib").replace("1.0.0", version),
            "templates/b.yaml": config_map(f"lib-{version}"),
        }
        archive = packed("lib", ((path, each.encode()) for path, each in text.items()))
        web.files[f"/lib-{version}.tgz"] = archive
        digest = hashlib.sha256(archive).hexdigest()
        urls = f"urls: ['{web.url}/lib-{version}.tgz'], digest: {digest}"
        entries += f"  - {{apiVersion: v2, name: lib, version: {version}, {urls}}}\n"
    web.files["/index.yaml"] = f"apiVersion: v1\nentries:\n  lib:\n{entries}".encode()
    root = planted(tmp_path / "tree", {**chart(), "app/Chart.yaml": depending("app", web.url)})
    with pytest.raises(NotAllowed, match=r"isn't in app/charts") as raised:
        await names(renderer, root)
    assert "helm dependency update app" in str(raised.value.hint)
    assert web.asked == []
    assert await names(renderer, root, allow_remote=True) == {"lib-1.1.0"}
    planted(root, {"app/Chart.lock": f"dependencies: [{{name: lib, repository: '{web.url}', version: 1.0.0}}]\n"})
    assert await names(renderer, root, allow_remote=True) == {"lib-1.0.0"}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ('{{ fail "no luck" }}', r"helm can't render app: execution error at \(app/templates/a\.yaml:1:3\): no luck"),
        ("{{ .Values.a.b.c }}", r"helm can't render app: .*app/templates/a\.yaml:1:\d+.*nil pointer"),
        ("{{ nothing }}", r'function "nothing" not defined'),
        ("a: [", r"helm can't render app: YAML parse error on app/templates/a\.yaml"),
        ("just text", r"helm can't render app: YAML parse error on app/templates/a\.yaml|can't be used"),
        (
            config_map("a") + "---\n" + config_map("a"),
            r"can't be used: app/templates/a\.yaml: .*is also at app/templates/a\.yaml",
        ),
        ("kind: ConfigMap\nmetadata: {name: x}\n", r"can't be used: app/templates/a\.yaml: apiVersion is missing"),
    ],
)
async def test_errors_say_what_matters(renderer: Renderer, tmp_path: Path, template: str, problem: str) -> None:
    """What Helm says is told in short, with names of the chart and none of this machine."""
    root = planted(tmp_path / "tree", chart(templates__a_yaml=template))
    with pytest.raises((ToolFailed, ManifestError), match=problem) as raised:
        await names(renderer, root)
    assert str(tmp_path) not in raised.value.message
    assert "--debug" not in raised.value.message


async def test_a_chart_for_another_kubernetes(renderer: Renderer, tmp_path: Path) -> None:
    """The way out is to say which Kubernetes it is for."""
    root = planted(tmp_path / "tree", {**chart(), "app/Chart.yaml": META.format("app") + "kubeVersion: '<1.20'\n"})
    with pytest.raises(ToolFailed, match="incompatible with Kubernetes") as raised:
        await names(renderer, root)
    assert "kube_version" in str(raised.value.hint)
    assert await names(renderer, root, kube_version="1.19.0") == set()


async def test_values_are_for_charts(renderer: Renderer, tmp_path: Path) -> None:
    """Values for what takes none would be lost, so they are refused."""
    root = planted(tmp_path / "tree", {"app/a.yaml": config_map("a")})
    with pytest.raises(RenderError, match="app is plain manifests, which takes no values"):
        await names(renderer, root, values=[{"a": 1}])


PATHS = [
    "a.txt",
    "b.md",
    "deep/a.txt",
    "deep/er/c.txt",
    "docs/a.md",
    "templates/.x",
    "templates/a.yaml",
    ".hidden",
    "ab",
    "a-b",
]
RULES = st.lists(
    st.lists(
        st.sampled_from(
            ["a", "b", "*", "?", "/", ".", "txt", "md", "deep", "docs", "[a-c]", "[^a]", "!", "#", " ", "\\", "er"]
        ),
        min_size=1,
        max_size=5,
    ).map("".join),
    max_size=3,
)


@pytest.mark.rounds
@settings(max_examples=20 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(rules=RULES)
def test_helm_ignores_the_same_files(tools: Tools, tmp_path_factory: pytest.TempPathFactory, rules: list[str]) -> None:
    """What a chart is made of, by our reading of .helmignore, is what `helm package` packs."""
    assume(
        not any(rule.strip().removeprefix("!").startswith("//") for rule in rules)
    )  # Helm takes one / more each time
    folder = tmp_path_factory.mktemp("ignoring")
    files = {f"app/{path}": "" for path in PATHS} | {
        "app/.helmignore": "\n".join(rules),
        "app/Chart.yaml": META.format("app"),
    }
    root = planted(folder, files)
    done = subprocess.run(
        [*tools.helm, "package", "-d", folder, root / "app"], capture_output=True, text=True, check=False
    )
    ours = None
    with suppress(InputError, RenderError):
        ours = set(list_chart(root, root / "app").files)
    assert (done.returncode == 0) == (ours is not None), f"{rules}: {done.stderr}"
    if ours is None:
        return
    with tarfile.open(folder / "app-1.0.0.tgz") as archive:
        theirs = {name.removeprefix("app/") for name in archive.getnames()}
    assert ours == theirs, rules


REFERENCES = [
    ValuesFrom("ConfigMap", "base"),
    ValuesFrom("Secret", "access", key="password", target_path="db.users[0].password"),
]


async def test_values_from_objects(tools: Tools, tmp_path: Path) -> None:
    """They reach the chart in order, below the request's own, and a Secret's value is on no command line."""
    objects = {
        ("ConfigMap", "base"): {"values.yaml": b"a: 1\nb: 1\ndb: {users: [{name: x}, {name: z}]}\n"},
        ("Secret", "access"): {"password": b"hunter2"},
    }

    async def lookup(kind: str, name: str) -> dict[str, bytes] | None:
        return objects.get((kind, name))

    planted(tmp_path, {"helm": f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nexec {tools.helm[0]} "$@"\n'})
    (tmp_path / "helm").chmod(0o755)
    root = planted(tmp_path / "tree", chart(templates__told_yaml=TOLD))
    values = [*await resolve(REFERENCES, lookup), {"b": 2}]
    found = await told(Renderer(Tools(helm=(str(tmp_path / "helm"),))), root, values=values)
    users = [{"name": "x", "password": "hunter2"}, {"name": "z"}]
    assert found["values"] == {"a": 1, "b": 2, "db": {"users": users}}
    arguments = (tmp_path / "arguments").read_text()
    assert "values-0.json" in arguments
    assert "hunter2" not in arguments


SETTINGS = st.lists(st.sampled_from([*"ab01-+'\"{},\\. \n", "true", "NULL", "false", "\u00e4"]), max_size=6).map(
    "".join
)


@pytest.mark.rounds
@settings(max_examples=25 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(["x", "x.y", "x[1]", "x.y[0].z", r"x\.y", "x[0][1]", "keep.y", "list[0].a"]), text=SETTINGS)
async def test_a_target_path_is_a_setting(
    tools: Tools, tmp_path_factory: pytest.TempPathFactory, path: str, text: str
) -> None:
    """A target path sets what `helm --set` sets, or --set-string if it is quoted; more than one value is refused."""
    folder = tmp_path_factory.mktemp("setting")
    before = {"keep": {"k": 1}, "list": [{"b": 1}, 2]}

    async def lookup(*_: str) -> dict[str, bytes]:
        return {"v": text.encode(), "values.yaml": json.dumps(before).encode()}

    ours = None
    with suppress(RenderError):
        references = [ValuesFrom("Secret", "s"), ValuesFrom("Secret", "s", key="v", target_path=path)]
        (ours,) = await resolve(references, lookup)
    if ours is None:
        assert set(text) & {",", "{"}
        return
    quoted = any(text.startswith(quote) and text.endswith(quote) for quote in "'\"")
    option, value = ("--set-string", text.strip("'\"")) if quoted else ("--set", text)
    assume(value or "]." not in path)  # of which Helm forgets the item
    files = {"values.json": json.dumps(before), "ours.json": json.dumps(ours)}
    root = planted(folder, {**chart(templates__told_yaml="a: {{ .Values | toJson | quote }}\n"), **files})
    around = environment(folder / "home", network=False)
    command = (*tools.helm, "template", "x", str(root / "app"), "--values")
    theirs = await run(*command, str(root / "values.json"), option, f"{path}={value}", environment=around, within=60)
    assert theirs.code == 0, theirs.complaints
    assert (await run(*command, str(root / "ours.json"), environment=around, within=60)).output == theirs.output
