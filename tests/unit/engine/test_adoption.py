"""From whom fields are taken over, which, and how the patch that does it is guarded."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.adoption import Adoption, adopt
from starling.engine.fields import ManagedFields

TIME = "2026-01-01T12:00:00Z"


def entry(fields: Any, manager: str = "starling", operation: str = "Apply", **more: str) -> ManagedFields:
    """An entry with these fields, given as YAML or as what YAML says."""
    tree = yaml.safe_load(fields) if isinstance(fields, str) else fields
    raw = msgspec.Raw(msgspec.json.encode(tree))
    version = more.pop("version", "apps/v1")
    return ManagedFields(manager, operation, version, TIME, fields_v1=raw, **more)


def documents(entries: list[ManagedFields]) -> list[dict[str, Any]]:
    """The entries as an object has them."""
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(entries))
    for document in found:
        document["fieldsType"] = "FieldsV1"
        if not document["subresource"]:
            del document["subresource"]
    return found


def patched(entries: list[ManagedFields], adoption: Adoption) -> list[ManagedFields]:
    """What the operations make of the entries; AssertionError where a test of theirs fails."""
    found = documents(entries)
    for operation in adoption.operations:
        place, _, name = operation["path"].removeprefix("/metadata/managedFields/").partition("/")
        match operation["op"]:
            case "test":
                assert found[int(place)] == operation["value"]
            case "replace":
                found[int(place)][name] = operation["value"]
            case "remove":
                del found[int(place)]
    return msgspec.json.decode(msgspec.json.encode(found), type=list[ManagedFields])


def fields(entries: list[ManagedFields]) -> dict[str, Any]:
    """The fields by manager."""
    return {one.manager: msgspec.json.decode(one.fields_v1) for one in entries}


OURS = entry("f:spec: {f:replicas: {}}")


@pytest.mark.parametrize(
    ("manager", "operation"),
    [
        ("kubectl", "Apply"), ("kubectl-client-side-apply", "Update"), ("kubectl-create", "Update"),
        ("kubectl-replace", "Update"), ("kubectl-run", "Update"), ("kubectl-expose", "Update"),
        ("kubectl-autoscale", "Update"), ("kubectl-last-applied", "Apply"), ("helm", "Update"), ("helm", "Apply"),
        ("helm-controller", "Update"), ("kustomize-controller", "Apply"), ("argocd-controller", "Update"),
        ("argocd-controller", "Apply"), ("argocd-application-controller", "Update"), ("starling", "Update"),
    ],
)  # fmt: skip
def test_makers_lose_everything_to_us(manager: str, operation: str) -> None:
    """Whoever put whole manifests in place before us is gone afterwards, and what is theirs is ours."""
    entries = [OURS, entry("f:spec: {f:replicas: {}, f:paused: {}}", manager, operation)]
    adoption = adopt(entries)
    assert adoption is not None
    assert adoption.managers == (manager,)
    assert adoption.beyond
    after = patched(entries, adoption)
    assert fields(after) == {"starling": {"f:spec": {"f:replicas": {}, "f:paused": {}}}}
    assert adopt(after) is None


def test_who_applies_client_side_is_known_by_the_annotation() -> None:
    """Under whatever name: the owner of kubectl's annotation is a maker."""
    mark = "f:metadata: {f:annotations: {f:kubectl.kubernetes.io/last-applied-configuration: {}}}"
    entries = [OURS, entry(mark, "ci", "Update")]
    adoption = adopt(entries)
    assert adoption is not None
    assert list(fields(patched(entries, adoption))) == ["starling"]


@pytest.mark.parametrize("manager", ["kubectl-edit", "kubectl-rollout", "kubectl", "before-first-apply"])
def test_hands_lose_just_what_git_says(manager: str) -> None:
    """A change by hand stays where git says nothing of the field."""
    entries = [OURS, entry("f:spec: {f:replicas: {}, f:paused: {}}", manager, "Update")]
    adoption = adopt(entries)
    assert adoption is not None
    assert not adoption.beyond
    after = patched(entries, adoption)
    assert fields(after) == {"starling": {"f:spec": {"f:replicas": {}}}, manager: {"f:spec": {"f:paused": {}}}}
    assert adopt(after) is None


@pytest.mark.parametrize(
    "other",
    [
        entry("f:spec: {f:replicas: {}}", "kube-controller-manager", "Update"),
        entry("f:spec: {f:replicas: {}}", "kubectl", "Update", subresource="scale"),
        entry("f:status: {f:replicas: {}}", "helm", "Update", subresource="status"),
        entry("f:spec: {f:replicas: {}}", "some-operator", "Apply"),
        entry("f:metadata: {f:finalizers: {'.': {}, 'v:\"x/y\"': {}}}", "kustomize-controller", "Update"),
        entry("{f:status: {f:x: {}}, f:metadata: {f:finalizers: {'v:\"x/y\"': {}}}}", "argocd-controller", "Update"),
        entry("f:spec: {f:paused: {}}", "kubectl-edit", "Update"),
    ],
    ids=[
        "a controller",
        "scale",
        "status",
        "an operator",
        "Flux on its own kinds",
        "what controllers write",
        "nothing",
    ],
)
def test_others_keep_their_entries(other: ManagedFields) -> None:
    """Nothing is taken from those who come back, or who have nothing that manifests say."""
    assert adopt([OURS, other]) is None
    assert adopt([other]) is None


def test_what_controllers_write_is_left_to_a_maker() -> None:
    """Its finalizers and status stay its own, unless git says them."""
    theirs = entry("{f:spec: {f:a: {}}, f:metadata: {f:finalizers: {'v:\"x\"': {}, 'v:\"y\"': {}}}}", "helm", "Update")
    ours = entry("f:metadata: {f:finalizers: {'v:\"x\"': {}}}")
    entries = [ours, theirs]
    adoption = adopt(entries)
    assert adoption is not None
    after = patched(entries, adoption)
    assert fields(after)["helm"] == {"f:metadata": {"f:finalizers": {'v:"y"': {}}}}
    assert fields(after)["starling"] == {"f:metadata": {"f:finalizers": {'v:"x"': {}}}, "f:spec": {"f:a": {}}}
    assert adopt(after) is None


def test_nothing_beyond_needs_no_second_apply() -> None:
    """Where a maker had said no more than git does, our entry isn't touched."""
    entries = [OURS, entry("f:spec: {f:replicas: {}}", "kubectl", "Apply")]
    adoption = adopt(entries)
    assert adoption is not None
    assert not adoption.beyond
    assert [operation["op"] for operation in adoption.operations] == ["test", "test", "remove"]


def test_another_version_has_a_turn_of_its_own() -> None:
    """First the entries of our version join ours; then ours becomes the other version's, for the next apply to mend."""
    old = entry("f:spec: {f:target: {}}", "kubectl-client-side-apply", "Update", version="autoscaling/v1")
    entries = [OURS, old, entry("f:spec: {f:min: {}}", "kubectl-client-side-apply", "Update")]
    first = adopt(entries)
    assert first is not None
    after = patched(entries, first)
    assert [(one.manager, one.api_version) for one in after] == [
        ("starling", "apps/v1"), ("kubectl-client-side-apply", "autoscaling/v1")
    ]  # fmt: skip
    second = adopt(after)
    assert second is not None
    assert second.beyond
    (last,) = patched(after, second)
    assert (last.manager, last.operation, last.api_version) == ("starling", "Apply", "autoscaling/v1")
    assert msgspec.json.decode(last.fields_v1) == {"f:spec": {"f:target": {}}}


MANAGERS = st.sampled_from([
    ("helm", "Update"), ("kubectl", "Apply"), ("kubectl-edit", "Update"), ("kubectl-create", "Update"),
    ("operator", "Update"), ("operator", "Apply"),
])  # fmt: skip
TREES: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["f:spec", "f:status", "f:metadata"]),
    st.dictionaries(st.sampled_from(["f:a", "f:b", "f:finalizers"]), st.just({}), min_size=1),
    min_size=1,
)


@given(TREES, st.lists(st.tuples(MANAGERS, TREES, st.sampled_from(["v1", "v2"])), max_size=6))
def test_adoption_ends_and_forgets_nothing(ours: Any, others: list[Any]) -> None:
    """Turn after turn it comes to an end, operators keep what they had, and no field of a maker becomes nobody's."""
    unique = {(who, version): tree for who, tree, version in others}
    theirs = [entry(tree, *who, version=version) for (who, version), tree in unique.items()]
    entries = [entry(ours, version="v1"), *theirs]
    turns = 0
    while adoption := adopt(entries):
        before = {step for one in entries for step in _leaves(one)}
        entries = patched(entries, adoption)
        if entries[0].api_version == "v1":
            assert {step for one in entries for step in _leaves(one)} == before
        else:  # what our next apply does
            entries[0] = entry(ours, version="v1")
        turns += 1
        assert turns <= 3
    kept = [one for one in entries if one.manager == "operator"]
    assert [msgspec.json.decode(one.fields_v1) for one in kept] == [
        tree for ((manager, _), _), tree in unique.items() if manager == "operator"
    ]
    for one in entries[1:]:
        assert one.manager in ("operator", "kubectl-edit") or not _leaves(one, "f:spec")


def _leaves(one: ManagedFields, under: str = "") -> set[tuple[str, str]]:
    tree = msgspec.json.decode(one.fields_v1)
    return {(top, step) for top, steps in tree.items() for step in steps if top.startswith(under)}
