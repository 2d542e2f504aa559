"""The content digest moves when the content does, and else stays."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.objects import Manifest, Origin
from starling.rendering.charts import list_chart
from starling.rendering.content import chart_digest, is_documentation, manifests_digest
from tests.unit.rendering.trees import planted


def manifest(name: str, value: Any, file: str = "") -> Manifest:
    """A ConfigMap."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}}
    return Manifest(content, Origin(file))


CONTENTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["1", "2"]), max_size=6)


@given(first=CONTENTS, second=CONTENTS, order=st.randoms(use_true_random=False))
def test_it_is_of_a_set_of_objects(first: dict[str, str], second: dict[str, str], order: Any) -> None:
    """Two sets of objects have the same digest if they are the same; order and origin don't count."""
    one = [manifest(*item, "x.yaml") for item in first.items()]
    other = [manifest(*item) for item in second.items()]
    order.shuffle(other)
    assert (manifests_digest(one) == manifests_digest(other)) == (first == second)


def test_its_scheme_is_told() -> None:
    """It is made exactly so, for ever: a change here is a new scheme."""
    content = b'{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}'
    entries = f'["manifests",[["","ConfigMap","","x","sha256:{hashlib.sha256(content).hexdigest()}"]]]'
    assert manifests_digest([manifest("x", "1")]) == f"c1:sha256:{hashlib.sha256(entries.encode()).hexdigest()}"


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    "values.yaml": "a: 1\n",
    "templates/a.yaml": "kind: A\n",
    "templates/NOTES.txt": "hello\n",
    "README.md": "words\n",
    "docs/more.txt": "words\n",
    "LICENSE": "words\n",
    "data/x.json": "{}\n",
    "crds/crd.yaml": "kind: B\n",
    "charts/sub/Chart.yaml": "name: sub\nversion: 1.0.0\n",
    "charts/sub/README.md": "words\n",
    "charts/sub/templates/a.yaml": "kind: C\n",
    ".helmignore": "ci/\n",
    "ci/test.yaml": "a: 2\n",
}
DOCUMENTATION = {"templates/NOTES.txt", "README.md", "docs/more.txt", "LICENSE", "charts/sub/README.md"}
UNSEEN = DOCUMENTATION | {"ci/test.yaml"}


def digest_of(folder: Path, files: dict[str, str], path: str = ".") -> str:
    """The digest of the chart at a path among these files."""
    root = planted(folder, files)
    return chart_digest(list_chart(root, (root / path).resolve()))


def test_what_is_documentation() -> None:
    """What people read is told from what Helm does."""
    assert {path for path in CHART if is_documentation(path)} == DOCUMENTATION
    assert not is_documentation("templates/docs.md")
    assert not is_documentation("templates/README.md")


@pytest.mark.parametrize("path", CHART)
def test_a_chart_moves_with_its_files(tmp_path: Path, path: str) -> None:
    """Any file counts, but for documentation and what .helmignore leaves out."""
    before = digest_of(tmp_path / "before", CHART)
    after = digest_of(tmp_path / "after", {**CHART, path: CHART[path] + "# more\n"})
    assert (before == after) == (path in UNSEEN)


@pytest.mark.parametrize("path", sorted(DOCUMENTATION))
def test_documentation_counts_where_a_template_may_read_it(tmp_path: Path, path: str) -> None:
    """A chart that reads files may read any; notes that define something are a template like others."""
    files = {
        **CHART,
        "templates/a.yaml": '{{ .Files.Get "README.md" }}',
        "templates/NOTES.txt": '{{ define "x" }}{{ end }}',
    }
    before = digest_of(tmp_path / "before", files)
    assert digest_of(tmp_path / "after", {**files, path: files[path] + "# more\n"}) != before


def test_charts_of_the_same_tree_count(tmp_path: Path) -> None:
    """What a chart depends on by file:// is part of it, and so is what that depends on."""
    chart = "apiVersion: v2\nname: {0}\nversion: 1.0.0\ndependencies: [{{name: {1}, version: '>=1', repository: 'file://../{1}'}}]\n"
    files = {
        "app/Chart.yaml": chart.format("app", "lib"),
        "lib/Chart.yaml": chart.format("lib", "base"),
        "base/Chart.yaml": "apiVersion: v2\nname: base\nversion: 1.0.0\n",
        "base/templates/a.yaml": "kind: A\n",
        "base/README.md": "words\n",
    }
    before = digest_of(tmp_path / "before", files, "app")
    assert digest_of(tmp_path / "words", {**files, "base/README.md": "others\n"}, "app") == before
    assert digest_of(tmp_path / "after", {**files, "base/templates/a.yaml": "kind: B\n"}, "app") != before
