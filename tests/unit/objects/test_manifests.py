"""Manifests: what they tell, what is refused, and how lists come apart."""

from typing import Any

import pytest

from starling.errors import InputError
from starling.objects import (
    GroupVersionKind,
    Manifest,
    ManifestError,
    ObjectKey,
    Origin,
    digest,
    load_manifests,
    refuse_duplicates,
)

DEPLOYMENT = """\
# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations:
spec:
  replicas: 2
"""


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap of that name."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def test_a_manifest_tells_what_it_is() -> None:
    """Its key, kind, names, labels, annotations, digest and origin."""
    [manifest] = load_manifests(DEPLOYMENT, "apps/web.yaml")
    assert manifest.key == ObjectKey("apps", "Deployment", "shop", "web")
    assert manifest.gvk == GroupVersionKind("apps", "v1", "Deployment")
    assert (manifest.name, manifest.namespace) == ("web", "shop")
    assert manifest.labels == {"app": "web"}
    assert manifest.annotations == {}
    assert manifest.origin == Origin("apps/web.yaml", 1, 2)
    assert manifest.digest == digest(manifest.content)
    assert str(manifest) == "Deployment.apps shop/web"


def test_a_changed_manifest_leaves_the_first_alone() -> None:
    """A change works on a copy, however deep it goes, and the new value knows its new key and digest."""
    first = Manifest(config_map("a", labels={"x": "1"}), Origin("f", 1, 1))
    before = first.digest

    def change(content: dict[str, Any]) -> None:
        content["metadata"]["labels"]["x"] = "2"
        content["metadata"]["name"] = "b"

    second = first.changed(change)
    assert (first.labels, first.name, first.digest) == ({"x": "1"}, "a", before)
    assert (second.labels, second.name, second.origin) == ({"x": "2"}, "b", first.origin)
    assert second.digest != before
    assert first.with_content(second.content) == second


def test_a_name_may_be_yet_to_come() -> None:
    """With generateName there is no name yet, and two such objects are no duplicates."""
    content = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}}
    manifest = Manifest(content)
    assert manifest.key == ObjectKey("", "Pod", "", "")
    refuse_duplicates([manifest, Manifest(dict(content))])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("just text", "the text 'just text' is no object"),
        ("- a", "a list is no object"),
        ("kind: Pod\nmetadata: {name: a}", "apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: a}", "kind is missing"),
        ("apiVersion: 1\nkind: Pod", "apiVersion is the number 1, not text"),
        ("apiVersion: v1\nkind: yes", "kind is true, not text"),
        ("apiVersion: a/b/c\nkind: Pod", "apiVersion 'a/b/c'"),
        ("apiVersion: v1\nkind: Pod", "metadata of Pod is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: [a]", "metadata of Pod is a list, not a mapping"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ''}", "Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}", "Pod's metadata.name is the number 7, not text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: [b]}", "metadata.namespace is a list, not text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: b}", "metadata.labels is the text 'b', not a mapping"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: yes}}", "metadata.labels['b'] is true, not text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {b: 1.5}}", "annotations['b'] is the number 1.5"),
        ("{apiVersion: v1, kind: List, items: [1]}", "an item of List is no object"),
        ("apiVersion: v1\nkind: List\nitems: {}", "metadata of List is missing"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, problem: str) -> None:
    """The error says what is wrong, and in which file, document and line."""
    good = "apiVersion: v1\nkind: Pod\nmetadata: {name: first}\n---\n\n"
    with pytest.raises(ManifestError) as caught:
        load_manifests(good + text, "apps/web.yaml")
    assert caught.value.message.startswith("apps/web.yaml:6 (document 2): ")
    assert problem in caught.value.message
    assert isinstance(caught.value, InputError)


def test_lists_stand_for_their_items() -> None:
    """A List, also one within another, comes apart; each item knows its line, and its kind if only the list says it."""
    text = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: PodList
  items:
  - metadata: {name: b}
  - {apiVersion: v2, kind: Other, metadata: {name: c}}
---
kind: List
apiVersion: v1
items:
---
apiVersion: example.com/v1
kind: AllowList
metadata: {name: d}
"""
    manifests = load_manifests(text, "f")
    assert [str(m.key) for m in manifests] == ["ConfigMap a", "Pod b", "Other c", "AllowList.example.com d"]
    assert [m.origin.line for m in manifests] == [4, 7, 7, 17]
    assert [m.gvk.api_version for m in manifests] == ["v1", "v1", "v2", "example.com/v1"]


def test_one_object_twice_is_refused() -> None:
    """The error names both places; another version of the same kind is the same object."""
    first = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    with pytest.raises(ManifestError) as caught:
        load_manifests(first + "---\n" + first.replace("apps/v1", "apps/v1beta1"), "f.yaml")
    assert caught.value.message == "f.yaml:5 (document 2): Deployment.apps web is also at f.yaml:1 (document 1)"
    with pytest.raises(ManifestError, match=r"b\.yaml:1 .* also at a\.yaml:1"):
        refuse_duplicates([*load_manifests(first, "a.yaml"), *load_manifests(first, "b.yaml")])
