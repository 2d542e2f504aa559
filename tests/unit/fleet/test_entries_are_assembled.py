"""A cluster's entries follow from what Modules claim, and go only when they may."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from starling.api.v1alpha1 import (
    MOST_PATCHES,
    Binding,
    CredentialsReference,
    Entry,
    ExactGit,
    HelmPackage,
    KustomizePackage,
    LabelSelector,
    ModuleOverride,
    Package,
    Patch,
    PatchTarget,
    SourceReference,
    SyncTemplate,
    Value,
)
from starling.errors import InputError
from starling.fleet import LARGEST, BindingError, Claim, ModuleRevision, assemble, check_size, make_entry
from tests.unit.fleet.simulated import entry

CANARY = LabelSelector(match_labels={"ring": "canary"})
GIT = ExactGit(url="https://git.test/app.git", commit="a" * 40, secret_ref=CredentialsReference(name="git-creds"))
REVISION = ModuleRevision(
    template=SyncTemplate(
        source=SourceReference(name="platform"),
        path="app",
        package=Package(helm=HelmPackage(release_name="app", values={"a": {"b": 1, "c": [1]}, "d": 1})),
        bindings=(Binding(name="HOST", value="$(CLUSTER_NAME).test"),),
        prune=False,
    ),
    overrides=(ModuleOverride(selector=CANARY, path="canary", values={"a": {"c": [2]}, "e": None}),),
    source=GIT,
    revision="v1@sha1:" + "a" * 40,
    target="t1:1",
)


def made(revision: ModuleRevision = REVISION, **labels: str) -> Entry:
    """The entry of a cluster with these labels."""
    cluster = {"metadata": {"name": "eu-1", "labels": labels}, "spec": {}}
    return make_entry(revision, cluster, name="app", unit="i/n/Module.app@eu-1", admission=4, credentials="creds-here")


def test_an_entry_is_exact() -> None:
    """It has the commit, the cluster's credentials, values instead of bindings, and all else from the template."""
    there = made()
    assert (there.name, there.unit, there.target, there.admission) == ("app", "i/n/Module.app@eu-1", "t1:1", 4)
    secret = CredentialsReference(name="creds-here", key="git-creds")
    assert there.source == SourceReference(git=replace(GIT, secret_ref=secret))
    assert there.bindings == ()
    assert there.values == (Value(name="CLUSTER_NAME", value="eu-1"), Value(name="HOST", value="eu-1.test"))
    assert (there.path, there.package, there.prune) == ("app", REVISION.template.package, False)


def test_a_public_repository_needs_no_secret() -> None:
    """Where the source names no Secret, neither does the entry."""
    source = made(replace(REVISION, source=replace(GIT, secret_ref=None))).source
    assert source.git is not None
    assert source.git.secret_ref is None


def test_the_first_override_counts() -> None:
    """It replaces the path, and its values are merged over the template's as Helm merges files of values."""
    second = ModuleOverride(selector=LabelSelector(), path="rest")
    there = made(replace(REVISION, overrides=(*REVISION.overrides, second)), ring="canary")
    assert there.path == "canary"
    assert there.package is not None
    assert there.package.helm == HelmPackage(release_name="app", values={"a": {"b": 1, "c": [2]}, "d": 1, "e": None})
    assert REVISION.template.package is not None
    assert REVISION.template.package.helm is not None
    assert REVISION.template.package.helm.values == {"a": {"b": 1, "c": [1]}, "d": 1}


def test_patches_of_an_override_come_last() -> None:
    """Those of the template are put on first; more than an entry may have are refused, and named."""
    own, more = Patch(patch="own"), Patch(patch="more", target=PatchTarget(kind="Deployment"))
    template = replace(REVISION.template, patches=(own,), package=None)
    revision = replace(REVISION, template=template, overrides=(ModuleOverride(selector=CANARY, patches=(more,)),))
    assert (made(revision).patches, made(revision, ring="canary").patches) == ((own,), (own, more))
    many = ModuleOverride(selector=CANARY, patches=(more,) * MOST_PATCHES)
    with pytest.raises(InputError, match=f"Module app: .* {MOST_PATCHES + 1} patches"):
        made(replace(revision, overrides=(many,)), ring="canary")


@pytest.mark.parametrize("package", [None, Package(kustomize=KustomizePackage())], ids=["detected", "kustomize"])
def test_values_need_a_chart(package: Package | None) -> None:
    """Values that nothing would use are an error that names the Module."""
    revision = replace(REVISION, template=replace(REVISION.template, package=package))
    with pytest.raises(InputError, match="Module app"):
        made(revision, ring="canary")
    assert made(revision).package == package


@pytest.mark.parametrize("how", [{"deleting": True}, {"admitted": 5, "leave": True, "selected": False}], ids=str)
def test_objects_that_are_to_stay_stay(how: dict[str, object]) -> None:
    """A cluster that may not know yet that they are to hears it before its entry goes, and has taken it in."""
    there = replace(entry("app", "t1:old"), admission=4)
    [told] = assemble([there], [claim(orphans=True, reported="t1:old", **how)])
    assert told == replace(there, deletion_policy="Orphan")
    assert assemble([told], [claim(orphans=True, reported="t1:old", **how)]) == (told,)
    assert assemble([told], [claim(orphans=True, reported="t1:old", acknowledged=True, **how)]) == ()
    assert assemble([there], [claim(orphans=True, acknowledged=True, **how)]) == (told,)
    knows = {"make": lambda target: replace(there, target=target, deletion_policy="Orphan")}
    assert assemble([told], [claim(orphans=True, reported="t1:old", **how, **knows)]) == ()
    assert assemble([told], [claim(orphans=True, reported="t1:before", **how, **knows)]) == (told,)
    assert assemble([there], [claim(**how)]) == ()


def test_bindings_without_a_value_are_refused() -> None:
    """An entry isn't made with half of its values."""
    template = replace(REVISION.template, bindings=(Binding(name="A", value="$(B)"),))
    with pytest.raises(BindingError):
        made(replace(REVISION, template=template))


def test_a_revision_is_json_and_back() -> None:
    """What a ControllerRevision keeps says its scheme, and one of another scheme isn't taken for ours."""
    text = msgspec.json.encode(REVISION)
    assert msgspec.json.decode(text)["scheme"] == 1
    assert msgspec.json.decode(text, type=ModuleRevision) == REVISION
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text.replace(b'"scheme":1', b'"scheme":2'), type=ModuleRevision)


def claim(**said: object) -> Claim:
    """What Module `app`, at target t1:new and admission 5, claims; it knows the targets t1:old and t1:new."""
    known = {target: replace(entry("app", target), path="made") for target in ("t1:old", "t1:new")}
    fields: dict[str, object] = {"module": "app", "target": "t1:new", "admission": 5, "selected": True}
    return Claim(**(fields | {"make": known.get} | said))  # type: ignore[arg-type]


OLD = entry("app", "t1:old", 3)
REMADE = replace(OLD, path="made")
MOVED = replace(entry("app", "t1:new", 5), path="made")
UNKNOWN = entry("app", "t1:forgotten", 3)
AHEAD = entry("app", "t1:old", 6)
THERE = entry("app", "t1:new", 4)


@pytest.mark.parametrize(
    ("before", "claimed", "after"),
    [
        pytest.param(OLD, claim(deleting=True), None, id="deleting"),
        pytest.param(AHEAD, claim(deleting=True), None, id="deleting, ahead"),
        pytest.param(AHEAD, claim(admitted=5), AHEAD, id="we are behind"),
        pytest.param(AHEAD, claim(admitted=5, leave=True, selected=False), AHEAD, id="we are behind, leaving"),
        pytest.param(OLD, claim(selected=False), OLD, id="not selected, not admitted"),
        pytest.param(OLD, claim(selected=False, admitted=5), OLD, id="not selected, admitted to move"),
        pytest.param(OLD, claim(selected=False, admitted=5, leave=True), None, id="not selected, admitted to leave"),
        pytest.param(OLD, claim(selected=False, leave=True), OLD, id="not selected, not admitted to leave"),
        pytest.param(OLD, claim(admitted=5, leave=True), REMADE, id="selected again"),
        pytest.param(OLD, claim(admitted=5), MOVED, id="admitted"),
        pytest.param(None, claim(admitted=5), MOVED, id="admitted, new"),
        pytest.param(THERE, claim(admitted=5), MOVED, id="admitted, there: the counter tells so"),
        pytest.param(THERE, claim(admitted=3), replace(THERE, path="made"), id="admitted, there: counter stays"),
        pytest.param(OLD, claim(admitted=2), replace(MOVED, admission=3), id="admitted, by a lower counter"),
        pytest.param(OLD, claim(admitted=4), replace(MOVED, admission=4), id="admitted, others later"),
        pytest.param(OLD, claim(admitted=5, target="t1:unknown"), OLD, id="admitted, target unknown"),
        pytest.param(None, claim(admitted=5, target="t1:unknown"), None, id="admitted, new, target unknown"),
        pytest.param(None, claim(), None, id="not admitted, none"),
        pytest.param(OLD, claim(), REMADE, id="not admitted: its own target, made anew"),
        pytest.param(UNKNOWN, claim(), UNKNOWN, id="not admitted: its target is no longer known"),
        pytest.param(
            THERE, claim(admitted=5, restore=True, reported="t1:old"), replace(REMADE, admission=5), id="restored"
        ),
        pytest.param(
            OLD, claim(admitted=4, restore=True, selected=False), replace(REMADE, admission=5), id="unselected"
        ),
        pytest.param(
            THERE, claim(admitted=4, restore=True, reported="t1:old"), replace(THERE, path="made"), id="restored before"
        ),
        pytest.param(THERE, claim(admitted=5, restore=True), MOVED, id="nothing to restore"),
        pytest.param(
            THERE,
            claim(admitted=5, restore=True, reported="t1:gone"),
            replace(THERE, admission=5),
            id="restored to the unknown",
        ),
        pytest.param(None, claim(admitted=5, restore=True, reported="t1:old"), None, id="restored, none"),
    ],
)
def test_a_claim_leads_to_an_entry(before: Entry | None, claimed: Claim, after: Entry | None) -> None:
    """An entry comes, moves and goes by admission only, and never to a lower counter."""
    assert assemble((before,) if before else (), [claimed]) == ((after,) if after else ())


ELSEWHERE = SourceReference(git=replace(GIT, commit="b" * 40, url="https://git.test/wrong"))


@pytest.mark.parametrize(
    ("claimed", "stays"),
    [
        pytest.param(claim(), True, id="not admitted"),
        pytest.param(claim(admitted=5, target="t1:old"), True, id="admitted to where it is"),
        pytest.param(claim(admitted=5, restore=True, reported="t1:old"), True, id="restored to where it is"),
        pytest.param(claim(admitted=5), False, id="moved"),
    ],
)
def test_the_commit_changes_with_the_target_alone(claimed: Claim, *, stays: bool) -> None:
    """A hub that knows a target by another commit leaves entries the one that they have, and nothing else of theirs."""
    (after,) = assemble([replace(OLD, source=ELSEWHERE)], [claimed])
    assert after.source.git is not None
    assert (after.path, after.source.git.commit == "b" * 40) == ("made", stays)
    assert after.source.git.url != "https://git.test/wrong"


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.dictionaries(NAMES, st.integers(0, 9)), st.dictionaries(NAMES, st.tuples(*[st.booleans()] * 5)))
def test_entries_of_others_stay(current: dict[str, int], claims: dict[str, tuple[bool, ...]]) -> None:
    """What nobody claims stays as it is, all is sorted by name, counters never fall, and twice is the same as once."""
    entries = [entry(name, "t1:x", admission) for name, admission in current.items()]
    said = [
        Claim(
            module=name,
            target="t1:new",
            admission=5,
            selected=selected,
            admitted=4 if admitted else None,
            leave=leave,
            restore=restore,
            reported="t1:x",
            deleting=deleting,
            make=lambda target, name=name: entry(name, target),  # type: ignore[misc]
        )
        for name, (selected, admitted, leave, restore, deleting) in claims.items()
    ]
    after = assemble(entries, said)
    assert [each.name for each in after] == sorted(each.name for each in after)
    assert [each for each in after if each.name not in claims] == sorted(
        (each for each in entries if each.name not in claims), key=lambda each: each.name
    )
    for each in after:
        assert each.admission >= current.get(each.name, 0)
    for name, (selected, _, _, _, deleting) in claims.items():
        assert name not in current or deleting or not selected or name in {each.name for each in after}
    assert assemble(after, said) == after


def test_too_much_is_refused() -> None:
    """Entries that wouldn't fit into one object are refused, with the largest named."""
    small, large = entry("small", "t1:1"), replace(entry("large", "t1:1"), path="x" * (LARGEST - 2000))
    check_size([small, large])
    with pytest.raises(InputError, match="Module large is the largest"):
        check_size([small, large, *(entry(f"e{number}", "t1:1") for number in range(20))])
