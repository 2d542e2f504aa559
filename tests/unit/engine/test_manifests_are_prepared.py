"""From manifests to what will be applied: placed, normalised, marked, in order, and nothing changed that was given."""

import copy
import random
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.ownership import LABEL, TRACKING, owner
from starling.engine.prepare import Prepared, kinds_needed, prepare
from starling.engine.unit import Unit
from starling.kube import Resource
from starling.objects import GroupVersionKind, Manifest, ManifestError, ObjectKey, Origin, load_manifests, short_digest

SYNC_WAVE = "argocd.argoproj.io/sync-wave"
UNIT = Unit(id="home/shop/Sync.web@edge", cluster="edge")
KINDS = {
    GroupVersionKind(group, version, kind): Resource(group, version, kind, f"{kind.lower()}s", namespaced)
    for group, version, kind, namespaced in (
        ("", "v1", "ConfigMap", True),
        ("", "v1", "Secret", True),
        ("", "v1", "Pod", True),
        ("", "v1", "Namespace", False),
        ("apps", "v1", "Deployment", True),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", False),
    )
}
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: SCOPE
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true}
  - {name: v1alpha1, served: false}
---
"""


def prepared(text: str, unit: Unit = UNIT) -> Prepared:
    """What becomes of a file."""
    return prepare(load_manifests(text, "f.yaml"), unit, KINDS)


def only(text: str, unit: Unit = UNIT) -> dict[str, Any]:
    """The content of the single object that a file is about."""
    [desired] = prepared(text, unit).desired
    return desired.manifest.content


def config_map(name: str, **metadata: Any) -> Manifest:
    """A ConfigMap of that name."""
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}, Origin(name))


# Marks, digests, order


def test_what_is_prepared_is_owned_and_named_by_its_digest() -> None:
    """Both marks are there under the settings' label, and the digest is over them too."""
    [desired] = prepare([config_map("a")], UNIT, KINDS, "my/label").desired
    manifest = desired.manifest
    assert manifest.key == desired.key == ObjectKey("", "ConfigMap", "default", "a")
    assert owner(desired.key, manifest.labels, manifest.annotations, "my/label") == UNIT.id
    assert desired.digest == short_digest(manifest.digest)
    assert desired.resource == KINDS[manifest.gvk]
    assert (manifest.origin, desired.create_only) == (Origin("a"), False)


MANIFESTS = st.lists(
    st.builds(
        config_map,
        st.text("abc", min_size=1),
        annotations=st.builds(lambda n: {SYNC_WAVE: str(n)}, st.integers(-2, 2)) | st.none(),
        namespace=st.sampled_from(["", "x", "y"]) | st.none(),
        uid=st.just("u"),
    ),
    unique_by=lambda manifest: manifest.key.name,
    max_size=6,
)


@given(manifests=MANIFESTS, order=st.randoms(use_true_random=False), target=st.sampled_from(["", "t"]))
def test_the_order_of_files_means_nothing(manifests: list[Manifest], order: random.Random, target: str) -> None:
    """Shuffled manifests are prepared as the same objects in the same order with the same digest."""
    unit = Unit(id=UNIT.id, cluster="edge", target_namespace=target)
    expected = prepare(manifests, unit, KINDS)
    shuffled = list(manifests)
    order.shuffle(shuffled)
    assert prepare(shuffled, unit, KINDS) == expected
    waves = [desired.wave for desired in expected.desired]
    assert waves == sorted(waves)


@given(manifests=MANIFESTS, more=st.text("xyz", min_size=1))
def test_the_digest_sees_every_object(manifests: list[Manifest], more: str) -> None:
    """One object more, or one with another content, is another digest."""
    before = prepare(manifests, UNIT, KINDS).digest
    assert prepare([*manifests, config_map(more)], UNIT, KINDS).digest != before
    labelled = [m.changed(lambda content: content["metadata"].update(labels={"a": more})) for m in manifests]
    assert (prepare(labelled, UNIT, KINDS).digest == before) == (not manifests)


def test_objects_come_by_wave_then_by_kind() -> None:
    """The order in which they will be applied."""
    text = """
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: c, annotations: {argocd.argoproj.io/sync-wave: "1"}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {argocd.argoproj.io/sync-wave: "-1"}}}
"""
    assert [(each.key.name, each.wave) for each in prepared(text).desired] == [("d", -1), ("b", 0), ("a", 0), ("c", 1)]


def test_what_others_need_comes_no_later_than_they() -> None:
    """As in Argo CD: a Namespace or CRD of a later wave comes forward to what needs it; an early one stays early."""
    late = 'annotations: {argocd.argoproj.io/sync-wave: "5"}'
    text = (
        CRD.replace("SCOPE", "Namespaced").replace("example.com}", f"example.com, {late}}}")
        + f"""
{{apiVersion: v1, kind: Namespace, metadata: {{name: x, {late}}}}}
---
{{apiVersion: v1, kind: Namespace, metadata: {{name: unused, {late}}}}}
---
{{apiVersion: v1, kind: Namespace, metadata: {{name: early, {late.replace("5", "-1")}}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: early}}}}
---
{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w, namespace: x, {late.replace("5", "2")}}}}}
"""
    )
    waves = {str(each.key): each.wave for each in prepared(text).desired}
    assert waves == {
        "Namespace early": -1,
        "ConfigMap early/c": 0,
        "Namespace x": 2,
        "CustomResourceDefinition.apiextensions.k8s.io widgets.example.com": 2,
        "Widget.example.com x/w": 2,
        "Namespace unused": 5,
    }


# Kinds and namespaces


@pytest.mark.parametrize(("scope", "namespace"), [("Namespaced", "default"), ("Cluster", "")])
def test_a_crd_brings_its_kind(scope: str, namespace: str) -> None:
    """Its objects are placed by its scope, though nobody serves them yet."""
    text = CRD.replace("SCOPE", scope) + "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"
    result = prepared(text)
    crd, widget = result.desired
    assert crd.resource is not None
    assert widget.resource is None
    assert widget.key == ObjectKey("example.com", "Widget", namespace, "w")
    assert result.problems == ()


@pytest.mark.parametrize("version", ["v1alpha1", "v2"])
def test_a_kind_that_nobody_brings_is_a_problem_of_its_own(version: str) -> None:
    """It is named with its place, the others go on, and what it may mean isn't given up for pruning."""
    text = (
        CRD.replace("SCOPE", "Cluster") + f"{{apiVersion: example.com/{version}, kind: Widget, metadata: {{name: w}}}}"
    )
    result = prepared(text)
    [problem] = result.problems
    assert [each.key.kind for each in result.desired] == ["CustomResourceDefinition"]
    assert problem.reason == "UnknownKind"
    assert problem.message.startswith("f.yaml:13 (document 2): Widget.example.com w: ")
    assert f"doesn't serve Widget in example.com/{version}" in problem.message
    assert problem.key == ObjectKey("example.com", "Widget", "", "w")
    assert problem.hint
    assert result.withheld == {problem.key, ObjectKey("example.com", "Widget", "default", "w")}


@pytest.mark.parametrize("spec", ["", "spec: 7", "spec: {group: [a]}", "spec: {group: g, names: {kind: K}, scope: x}"])
def test_a_crd_that_says_nothing_brings_nothing(spec: str) -> None:
    """It is the API server's to refuse."""
    text = f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: a}}\n{spec}"
    assert len(prepared(text).desired) == 1


def test_the_kinds_to_ask_for_are_those_of_the_manifests() -> None:
    """Each once."""
    assert kinds_needed([config_map("a"), config_map("b")]) == {GroupVersionKind("", "v1", "ConfigMap")}


@pytest.mark.parametrize("name", ["a/b", "..", "50%"])
def test_a_name_that_fits_no_path_is_a_problem_of_its_own(name: str) -> None:
    """A request for it would go somewhere else."""
    to_come = config_map("", generateName=f"{name}/")
    result = prepare([config_map(name), config_map("b"), to_come], UNIT, KINDS)
    assert [each.key.name for each in result.desired] == ["b"]
    assert [problem.reason for problem in result.problems] == ["InvalidName", "InvalidName"]


@pytest.mark.parametrize(
    ("target", "written", "expected"),
    [("", None, "usual"), ("", "", "usual"), ("", "own", "own"), ("moved", None, "moved"), ("moved", "own", "moved")],
)
def test_a_namespace_is_found_for_what_needs_one(target: str, written: str | None, expected: str) -> None:
    """The target's wins over the manifest's own, that over the default."""
    unit = Unit(id=UNIT.id, cluster="edge", target_namespace=target, default_namespace="usual")
    [desired] = prepare([config_map("a", namespace=written)], unit, KINDS).desired
    assert desired.key.namespace == desired.manifest.content["metadata"]["namespace"] == expected


def test_what_is_in_no_namespace_loses_it() -> None:
    """Templating tools write it everywhere; kubectl and others apply such an object all the same."""
    unit = Unit(id=UNIT.id, cluster="edge", target_namespace="moved")
    content = only("{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}", unit)
    assert "namespace" not in content["metadata"]


def test_one_object_twice_is_refused() -> None:
    """Also if they become one only when placed: the error names both places."""
    first = Manifest(config_map("a", namespace="default").content, Origin("first"))
    second = Manifest(config_map("a").content, Origin("second"))
    with pytest.raises(ManifestError, match=r"^second: .*default/a is also at first"):
        prepare([first, second], UNIT, KINDS)
    unknown = [Manifest({**first.content, "kind": "What"}, Origin(place)) for place in ("first", "second")]
    with pytest.raises(ManifestError, match=r"^second: .*default/a is also at first"):
        prepare(unknown, UNIT, KINDS)


# Contents


def test_what_the_api_server_makes_is_dropped() -> None:
    """People write live objects to files."""
    content = only("""
apiVersion: v1
kind: Pod
metadata:
  name: a
  uid: u
  resourceVersion: "7"
  generation: 2
  selfLink: /a
  creationTimestamp:
  managedFields: [{manager: kubectl}]
  finalizers: [keep]
spec: {status: kept}
status: {phase: Running}
""")
    assert set(content) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(content["metadata"]) == {"name", "namespace", "finalizers", "labels", "annotations"}
    assert content["spec"] == {"status": "kept"}


@pytest.mark.parametrize("empty", ["{}", "[]", "null"])
def test_empty_metadata_is_dropped(empty: str) -> None:
    """On custom resources it would make the API server write the object anew at every apply."""
    fields = ", ".join(f"{name}: {empty}" for name in ("ownerReferences", "finalizers"))
    maps = ", ".join(f"{name}: {'{}' if empty == '[]' else empty}" for name in ("labels", "annotations"))
    content = only(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, {fields}, {maps}}}, data: {{}}}}")
    assert set(content["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert content["metadata"]["labels"].keys() == {LABEL}
    assert content["metadata"]["annotations"].keys() == {TRACKING}
    assert content["data"] == {}


def generated(base: str, unit: Unit = UNIT, **rest: Any) -> str:
    """The name that a Pod with that generateName gets."""
    content = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": base}, **rest}
    [desired] = prepare([Manifest(content)], unit, KINDS).desired
    assert desired.create_only
    assert desired.manifest.name == desired.key.name
    return desired.key.name


def test_a_generated_name_is_the_same_at_the_next_try() -> None:
    """It comes from unit and content: another unit or content is another name, a status or mark is not."""
    name = generated("job-", spec={"a": 1})
    assert name.startswith("job-")
    assert len(name) == len("job-") + 10
    assert generated("job-", spec={"a": 1}, status={"phase": "Failed"}) == name
    others = {
        generated("job-", spec={"a": 2}),
        generated("job-", Unit(id="home/shop/Sync.b@edge", cluster="edge"), spec={"a": 1}),
        generated("job-", Unit(id=UNIT.id, cluster="edge", target_namespace="x"), spec={"a": 1}),
    }
    assert len(others | {name}) == 4
    assert len(generated("x" * 300)) <= 63


def test_a_name_wins_over_generate_name() -> None:
    """As in the API server; then the object is applied like any other."""
    [desired] = prepare([config_map("a", generateName="b-")], UNIT, KINDS).desired
    assert (desired.key.name, desired.create_only) == ("a", False)


# Nothing given is changed

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
CONTENTS = st.builds(
    lambda kind, metadata, rest: {**kind, "metadata": metadata, **rest},
    st.sampled_from([{"apiVersion": gvk.api_version, "kind": gvk.kind} for gvk in KINDS]),
    st.fixed_dictionaries(
        {"generateName": st.just("g-")},
        optional={
            "name": st.text("ab", min_size=1),
            "namespace": st.sampled_from(["", "n", "default"]),
            "labels": st.dictionaries(st.sampled_from(["a", LABEL]), st.text(max_size=2)),
            "annotations": st.none() | st.just({SYNC_WAVE: "3"}),
            "uid": st.text(),
            "managedFields": VALUES,
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "spec": VALUES,
            "status": VALUES,
            "stringData": st.dictionaries(st.text(), st.text()) | VALUES,
            "data": st.dictionaries(st.text(), st.binary().map(lambda value: b64encode(value).decode())),
        },
    ),
)


@given(contents=st.lists(CONTENTS, max_size=4), target=st.sampled_from(["", "t"]))
def test_what_is_given_is_never_changed(contents: list[dict[str, Any]], target: str) -> None:
    """Contents are shared by whoever rendered them; whatever comes of them, they stay as they were."""
    before = copy.deepcopy(contents)
    unit = Unit(id=UNIT.id, cluster="edge", target_namespace=target)
    try:
        result = prepare([Manifest(content) for content in contents], unit, KINDS)
    except ManifestError:
        result = None
    assert contents == before
    if result:
        for desired in result.desired:
            manifest = desired.manifest
            assert owner(desired.key, manifest.labels, manifest.annotations) == unit.id
            assert "status" not in manifest.content


@pytest.mark.parametrize(
    ("annotations", "applied"),
    [
        ({"helm.sh/hook": "pre-delete"}, False),
        ({"helm.sh/hook": "pre-rollback, test"}, False),
        ({"helm.sh/hook": "pre-install,pre-delete"}, True),
        ({"helm.sh/hook": "post-install"}, True),
        ({"argocd.argoproj.io/hook": "SyncFail"}, False),
        ({"argocd.argoproj.io/hook": "Skip"}, False),
        ({"argocd.argoproj.io/hook": "PreSync", "helm.sh/hook": "pre-delete"}, True),
        ({"helm.sh/hook": ""}, True),
        ({}, True),
    ],
)
def test_hooks_of_other_occasions_are_left_out(annotations: dict[str, str], applied: bool) -> None:
    """A Job that cleans up before a deletion must not run at an install; Argo CD's word counts before Helm's."""
    found = prepare([config_map("a", annotations=annotations)], UNIT, KINDS)
    assert bool(found.desired) is applied
    assert not found.problems
