"""What a kustomization refers to is known before kustomize runs."""

from pathlib import Path

import pytest

from starling.objects import ManifestError
from starling.rendering import NotAllowed, RenderError
from starling.rendering.kustomizations import check_kustomizations, is_of_machine, is_remote
from tests.unit.rendering.trees import config_map, planted

REMOTE = [
    "https://example.com/a.yaml",
    "http://example.com/a.yaml",
    "HTTPS://example.com/a.yaml",
    "https:example",
    "https://github.com/org/repo//path?ref=v1",
    "github.com/org/repo//path?ref=v1",
    "GitHub.com/org/repo",
    "github.com:org/repo.git",
    "git@github.com:org/repo.git",
    "git@git.example:org/repo.git//path?ref=main",
    "org-123@github.example/org/repo",
    "ssh://git@git.example/org/repo.git",
    "git::https://git.example/org/repo.git",
    "GIT::ssh://git.example/org/repo",
    "https://user:hunter2@git.example/org/repo",
    "https://dev.azure.example/org/project/_git/repo",
    "git://git.example/org/repo",
    "s3::https://bucket.example/x",
    "gh:org/repo",
    " https://example.com/a.yaml",
    "https://git.example/org/repo\n",
]
OF_MACHINE = [
    "file:///srv/repo.git",
    "file:///srv/repo//path",
    "FILE:///srv/example?ref=main",
    " git::file:///srv/repo",
    "git::/srv/repo.git",
    "git::../repo",
    "ext::sh -c /example",
]
"""Remote forms that lead to this machine."""
LOCAL = ["../base", "a.yaml", "./a.yaml", "app@v1.yaml", "deep/er/a.yaml", "github.com", "https.yaml", "a b.yaml", "@x"]

FIELDS = {
    "resources": "resources: [{}]",
    "RESOURCES": "RESOURCES: [{}]",
    "re\u017fources": "re\u017fources: [{}]",
    "bases": "bases: [{}]",
    "components": "components: [{}]",
    "crds": "crds: [{}]",
    "configurations": "configurations: [{}]",
    "generators": "generators: [{}]",
    "transformers": "transformers: [{}]",
    "validators": "validators: [{}]",
    "patches": "patches: [{{path: {}}}]",
    "Patches": "patches: [{{Path: {}}}]",
    "patches of old": "patches: [{}]",
    "patchesStrategicMerge": "patchesStrategicMerge: [{}]",
    "patchesJson6902": "patchesJson6902: [{{path: {}, target: {{version: v1, kind: ConfigMap, name: a}}}}]",
    "replacements": "replacements: [{{path: {}}}]",
    "files": "configMapGenerator: [{{name: x, files: [{}]}}]",
    "envs": "configMapGenerator: [{{name: x, envs: [{}]}}]",
    "env": "secretGenerator: [{{name: x, env: {}}}]",
    "openapi": "openapi: {{path: {}}}",
}
"""A kustomization for each field that can name something."""


def quoted(text: str) -> str:
    """A text as YAML writes it."""
    return '"' + text.replace("\n", "\\n") + '"'


def check(root: Path, path: str = ".", *, allow_remote: bool = False) -> None:
    """Look through the kustomization at a path."""
    check_kustomizations(root, root / path, allow_remote=allow_remote)


@pytest.mark.parametrize("text", [*REMOTE, *OF_MACHINE])
def test_remote_forms_are_known(text: str) -> None:
    """Everything that kustomize fetches counts as remote; of it we know what is on this machine."""
    assert is_remote(text)
    assert is_of_machine(text) == (text in OF_MACHINE)


@pytest.mark.parametrize("text", LOCAL)
def test_paths_are_not_remote(text: str) -> None:
    """Paths of files don't, odd as they are."""
    assert not is_remote(text)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", REMOTE)
def test_remote_content_is_refused_in_every_field(tmp_path: Path, field: str, text: str) -> None:
    """Whatever the field, what is remote is refused with the file, the field and its name; unless it is allowed."""
    root = planted(tmp_path, {"app/kustomization.yaml": FIELDS[field].format(quoted(text))})
    with pytest.raises(NotAllowed, match=r"^app/kustomization\.yaml: .*which is remote") as raised:
        check(root, "app")
    assert "hunter2" not in raised.value.message
    assert "example" in raised.value.message or "/" in raised.value.message
    check(root, "app", allow_remote=True)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", OF_MACHINE)
def test_repositories_of_the_machine_are_refused_in_every_field(tmp_path: Path, field: str, text: str) -> None:
    """What git would take from this machine is refused by name, allowed or not."""
    root = planted(tmp_path, {"app/kustomization.yaml": FIELDS[field].format(quoted(text))})
    for allow_remote in (False, True):
        with pytest.raises(NotAllowed, match=r"^app/kustomization\.yaml: .*/.*, which is on the machine"):
            check(root, "app", allow_remote=allow_remote)


def test_repositories_of_the_machine_are_refused_in_plugins(tmp_path: Path) -> None:
    """So is what one of kustomize's own plugins names."""
    plugin = BUILTIN_PATCH.replace("https://example.com/p", "file:///srv/p")
    root = planted(tmp_path, {"kustomization.yaml": "transformers: [x.yaml]", "x.yaml": plugin})
    with pytest.raises(NotAllowed, match="PatchTransformer names file:///srv/p, which is on the machine"):
        check(root, allow_remote=True)


@pytest.mark.parametrize("text", ["key=https://example.com/x", "=https://example.com/x"])
def test_a_file_with_a_key(tmp_path: Path, text: str) -> None:
    """A generator's file may have a key before its URL."""
    root = planted(tmp_path, {"kustomization.yaml": FIELDS["files"].format(text)})
    with pytest.raises(NotAllowed, match=r"names https://example\.com/x, which is remote"):
        check(root)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", ["../../out", "/etc/hostname", "away", "../../out/kustomization.yaml"])
def test_what_leads_out_is_refused_in_every_field(tmp_path: Path, field: str, text: str) -> None:
    """Dots, absolute paths and links out of the tree are refused by name, allowed or not."""
    planted(tmp_path, {"out/kustomization.yaml": "resources: []"})
    root = planted(
        tmp_path / "tree", {"app/kustomization.yaml": FIELDS[field].format(text), "app/away": "-> ../../out"}
    )
    for allow_remote in (False, True):
        with pytest.raises(NotAllowed, match=r"^app/kustomization\.yaml: .* leads out of the repository"):
            check(root, "app", allow_remote=allow_remote)


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_not_there_is_refused_in_every_field(tmp_path: Path, field: str) -> None:
    """What kustomize doesn't find it would try to clone, so it isn't asked."""
    root = planted(tmp_path, {"kustomization.yaml": FIELDS[field].format("gitlab.example/org/repo")})
    with pytest.raises(RenderError, match=r"names gitlab\.example/org/repo, which isn't in the repository"):
        check(root)


def test_bases_are_followed(tmp_path: Path) -> None:
    """A remote resource is found however many bases and components lie between; each folder is read once."""
    root = planted(
        tmp_path,
        {
            "overlay/kustomization.yaml": "resources: [../base]\ncomponents: [../part]",
            "base/kustomization.yml": "resources: [a.yaml, ../deep]",
            "base/a.yaml": config_map("a"),
            "part/Kustomization": "kind: Component\nresources: [../deep]",
            "deep/kustomization.yaml": "bases: [../overlay]",
        },
    )
    check(root, "overlay")  # it goes round, which is for kustomize to complain about
    planted(root, {"deep/more/kustomization.yaml": "resources: ['https://example.com/x']"})
    (root / "deep/kustomization.yaml").write_text("resources: [more]")
    with pytest.raises(NotAllowed, match=r"^deep/more/kustomization\.yaml: resources names https://example\.com/x"):
        check(root, "overlay")


def test_a_base_without_a_kustomization(tmp_path: Path) -> None:
    """A folder that is no kustomization can't be a base."""
    root = planted(tmp_path, {"kustomization.yaml": "resources: [sub]", "sub/a.yaml": config_map("a")})
    with pytest.raises(RenderError, match=r"^sub is named as a base"):
        check(root)


EXEC = """\
apiVersion: example.com/v1
kind: Runner
metadata:
  name: x
  annotations:
    config.kubernetes.io/function: 'exec: {path: ./run.sh}'
"""
BUILTIN_CHART = (
    "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nrepo: https://example.com\n"
)
BUILTIN_PATCH = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: https://example.com/p\n"
BUILTIN_FILES = (
    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\nFiles: ['a=http://example.com/p']\n"
)


@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
@pytest.mark.parametrize("how", ["file", "folder", "inline"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (EXEC, "Runner is a plugin or function"),
        (BUILTIN_CHART, "HelmChartInflationGenerator would have kustomize run helm"),
        (BUILTIN_PATCH, "PatchTransformer names https://example.com/p, which is remote"),
        (BUILTIN_FILES, "ConfigMapGenerator names http://example.com/p, which is remote"),
    ],
)
def test_plugins_are_refused(tmp_path: Path, field: str, how: str, text: str, problem: str) -> None:
    """Programs, functions and charts are refused however they are given."""
    files = {"plugin/x.yaml": text, "plugin/kustomization.yaml": "resources: [x.yaml]"}
    entry = {
        "file": " plugin/x.yaml",
        "folder": " plugin",
        "inline": " |\n" + "".join(f"    {line}\n" for line in text.splitlines()),
    }
    root = planted(tmp_path, {**files, "kustomization.yaml": f"{field}:\n-{entry[how]}\n"})
    with pytest.raises(NotAllowed, match=problem):
        check(root)


@pytest.mark.parametrize("field", ["helmCharts", "helmchartS", "helmChartInflationGenerator"])
def test_charts_in_kustomizations_are_refused(tmp_path: Path, field: str) -> None:
    """A chart within a kustomization is refused, with the way out."""
    root = planted(tmp_path, {"kustomization.yaml": f"{field}: [{{name: x}}]"})
    with pytest.raises(NotAllowed, match="run helm on a chart") as raised:
        check(root, allow_remote=True)
    assert "render the chart by itself" in str(raised.value.hint)


def test_what_kustomize_has_built_in_is_fine(tmp_path: Path) -> None:
    """Its own transformers, inline patches and texts that merely hold URLs are nobody's business."""
    patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {url: 'https://example.com'}\n"
    kustomization = f"""\
resources: [a.yaml]
commonAnnotations: {{docs: https://example.com}}
configMapGenerator: [{{name: x, literals: ['url=https://example.com'], files: [key=a.yaml]}}]
images: [{{name: a, newName: registry.example/a}}]
patchesStrategicMerge:
- |
{"".join(f"  {line}" + chr(10) for line in patch.splitlines())}
transformers:
- |
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {{name: x}}
  annotations: {{docs: https://example.com}}
  fieldSpecs: [{{path: metadata/annotations, create: true}}]
"""
    check(planted(tmp_path, {"kustomization.yaml": kustomization, "a.yaml": config_map("a")}))


def test_a_kustomization_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    """The file and the line are named."""
    root = planted(tmp_path, {"app/kustomization.yaml": "resources:\n- a\nresources:\n- b\n"})
    with pytest.raises(ManifestError, match=r"^app/kustomization\.yaml:3.*stands twice"):
        check(root, "app")
