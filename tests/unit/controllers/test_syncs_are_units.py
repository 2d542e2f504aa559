"""What a Sync means to the engine: its unit's id, whom it acts as, which version, and what holds it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from starling.api import PLATFORM_NAMESPACE, Assemblage, Source, Sync
from starling.controllers.exact import exact_git
from starling.controllers.sync_units import (
    Surroundings,
    SyncSettings,
    account_of,
    controller_of,
    unit_id,
    unit_of,
    variables,
)
from starling.errors import InputError
from starling.kube import Identity

API = "starling.dev/v1alpha1"
ONE, TWO = "1" * 40, "2" * 40
UNIT = "prod/team/Module.web@c1"


def sync(namespace: str = "team", *, deleting: bool = False, uid: str = "", **spec: Any) -> Sync:
    """A Sync; with `uid`, controlled by the Assemblage that has it."""
    owner = {"apiVersion": API, "kind": "Assemblage", "name": "prod", "uid": uid, "controller": True}
    metadata: dict[str, Any] = {"name": "web", "namespace": namespace}
    if uid:
        metadata["ownerReferences"] = [owner]
    if deleting:
        metadata["deletionTimestamp"] = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = {"source": {"git": {"url": "https://git.example/x", "commit": ONE}}, **spec}
    return msgspec.convert({"apiVersion": API, "kind": "Sync", "metadata": metadata, "spec": wanted}, Sync)


def assemblage(uid: str = "u1", *, deleting: bool = False, **spec: Any) -> Assemblage:
    """An Assemblage."""
    metadata: dict[str, Any] = {"name": "prod", "namespace": "team", "uid": uid}
    if deleting:
        metadata["deletionTimestamp"] = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = {"instance": "prod", **spec}
    return msgspec.convert({"apiVersion": API, "kind": "Assemblage", "metadata": metadata, "spec": wanted}, Assemblage)


def source(revision: str = "", **git: Any) -> Source:
    """A Source that has found this version."""
    spec = {"git": {"url": "https://git.example/x", "ref": {"branch": "main"}, **git}, "ignore": ["docs"]}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    artifact = {"revision": revision, "digest": "sha256:x", "size": 1, "lastUpdate": now}
    status = {"artifact": artifact} if revision else {}
    metadata = {"name": "s", "namespace": "team"}
    document = {"apiVersion": API, "kind": "Source", "metadata": metadata, "spec": spec, "status": status}
    return msgspec.convert(document, Source)


def test_the_hub_s_name_counts_only_with_its_assemblage() -> None:
    """A Sync is what it says only if the very Assemblage that it names is there."""
    there = assemblage("u1")
    made = sync(uid="u1", unit=UNIT)
    assert controller_of(made, lambda _: there) is there
    assert unit_id(made, there, SyncSettings()) == UNIT
    for stranger in (controller_of(sync(uid="u2"), lambda _: there), controller_of(sync(), lambda _: there)):
        assert stranger is None
    assert controller_of(made, lambda _: None) is None
    assert unit_id(made, None, SyncSettings()) == "local/team/Sync.web@this"
    assert unit_id(made, None, SyncSettings(instance="x", cluster="eu")) == "x/team/Sync.web@eu"


@pytest.mark.parametrize("unit", ["", "prod/web", "prod/other/Module.web@c1", "prod/team/Module.web@c1:x"])
def test_the_hub_s_name_is_one_of_its_own_namespace(unit: str) -> None:
    """What is no id, or one of another namespace, is refused."""
    with pytest.raises(InputError, match="none of the namespace team"):
        unit_id(sync(unit=unit), assemblage(), SyncSettings())


def test_accounts_are_of_the_namespace() -> None:
    """Only the platform acts with our own rights, and only where it names no account."""
    assert account_of(sync()) == Identity.service_account("team", "starling")
    assert account_of(sync(serviceAccountName="d")) == Identity.service_account("team", "d")
    assert account_of(sync(PLATFORM_NAMESPACE)) is None
    named = account_of(sync(PLATFORM_NAMESPACE, serviceAccountName="d"))
    assert named == Identity.service_account(PLATFORM_NAMESPACE, "d")
    assert unit_of(sync(), UNIT, Surroundings()).default_namespace == "team"
    assert unit_of(sync(PLATFORM_NAMESPACE), UNIT, Surroundings()).default_namespace == "default"


def test_inline_commits_are_told_with_their_tag() -> None:
    """An exact commit is its own version, whatever else stands there."""
    made = sync(source={"git": {"url": "https://git.example/x", "commit": TWO, "tag": "v1.2.3"}}, revision="ignored")
    assert exact_git(made, None)[1] == f"v1.2.3@sha1:{TWO}"
    assert exact_git(sync(), None)[1] == f"sha1:{ONE}"
    assert unit_of(made, UNIT, Surroundings()).revision == f"v1.2.3@sha1:{TWO}"


def test_sources_are_followed_or_pinned() -> None:
    """The Source's version, with its credentials, submodules and ignored files; or the one that is pinned."""
    follows = sync(source={"name": "s"})
    git, revision = exact_git(follows, source(f"main@sha1:{ONE}", secretRef={"name": "c"}, submodules=True))
    assert (git.commit, git.tag, git.submodules, git.ignore, revision) == (
        ONE, "main", True, ("docs",), f"main@sha1:{ONE}",
    )  # fmt: skip
    assert git.secret_ref is not None
    assert git.secret_ref.name == "c"
    pinned = sync(source={"name": "s"}, revision=f"sha256:{ONE}{'0' * 24}")
    assert exact_git(pinned, source())[0].commit == ONE + "0" * 24


def test_versions_that_can_not_be_told_or_trusted_are_refused() -> None:
    """A pin that names no commit, or one whose signature nobody has checked, is an error."""
    with pytest.raises(InputError, match="names no commit"):
        exact_git(sync(source={"name": "s"}, revision="v1"), source(f"main@sha1:{ONE}"))
    verified = source(f"main@sha1:{ONE}", verify={"secretRef": {"name": "k"}})
    pinned = sync(source={"name": "s"}, revision=f"main@sha1:{TWO}")
    with pytest.raises(InputError, match="wants signatures"):
        exact_git(pinned, verified)
    assert exact_git(sync(source={"name": "s"}, revision=f"main@sha1:{ONE}"), verified)[0].commit == ONE


FROZEN = assemblage(mode="Frozen")
NAMED: dict[str, Any] = {"source": {"name": "s"}}


@pytest.mark.parametrize(
    ("made", "around", "held"),
    [
        pytest.param(sync(), Surroundings(), "", id="free"),
        pytest.param(sync(suspend=True), Surroundings(), "suspended", id="suspended"),
        pytest.param(sync(suspend=True, deleting=True), Surroundings(), "", id="suspended and deleted"),
        pytest.param(sync(), Surroundings(controller=FROZEN), "the cluster is frozen", id="frozen"),
        pytest.param(sync(deleting=True), Surroundings(controller=FROZEN), "the cluster is frozen", id="also deleted"),
        pytest.param(sync(), Surroundings(controller=assemblage(mode="Cordoned")), "", id="cordoned"),
        pytest.param(
            sync(deleting=True), Surroundings(controller=assemblage(mode="Frozen", released=True)), "", id="released"
        ),
        pytest.param(sync(**NAMED), Surroundings(), "there is no Source team/s", id="no source"),
        pytest.param(sync(**NAMED), Surroundings(source=source()), "Source team/s has no version yet", id="none yet"),
        pytest.param(sync(**NAMED), Surroundings(source=source(f"sha1:{ONE}")), "", id="found"),
        pytest.param(sync(**NAMED, revision=f"sha1:{ONE}"), Surroundings(source=source()), "", id="pinned"),
        pytest.param(sync(**NAMED, deleting=True), Surroundings(), "", id="deleted without"),
    ],
)
def test_what_holds_a_unit(made: Sync, around: Surroundings, held: str) -> None:
    """Suspension, a frozen cluster and a Source without a version hold a unit; what is let go isn't held."""
    assert unit_of(made, UNIT, around).held == held


@pytest.mark.parametrize(
    ("made", "terminating", "policy"),
    [
        pytest.param(sync(deleting=True), False, "Prune", id="deleted"),
        pytest.param(sync(deleting=True, deletionPolicy="Orphan"), False, "Orphan", id="orphaned"),
        pytest.param(sync(deleting=True, suspend=True), False, "Orphan", id="suspended"),
        pytest.param(sync(deleting=True), True, "Orphan", id="with its namespace"),
    ],
)
def test_nobody_loses_what_they_did_not_remove(made: Sync, terminating: bool, policy: str) -> None:
    """What goes down with its namespace or while suspended leaves its objects, by our own rights if need be."""
    unit = unit_of(made, UNIT, Surroundings(terminating=terminating))
    assert unit.deleting
    assert unit.deletion_policy == policy
    assert (unit.identity is None) is terminating


@pytest.mark.parametrize(
    ("controller", "policy"),
    [
        pytest.param(assemblage(), "Prune", id="its entry left"),
        pytest.param(assemblage(mode="Cordoned"), "Prune", id="and no other comes"),
        pytest.param(assemblage(released=True), "Orphan", id="released"),
        pytest.param(assemblage(deleting=True), "Orphan", id="being deleted"),
        pytest.param(None, "Orphan", id="gone"),
    ],
)
def test_an_assemblage_that_goes_takes_nothing_along(controller: Assemblage | None, policy: str) -> None:
    """A Sync that is deleted with its Assemblage leaves its objects; an entry that left a live one takes them along."""
    around = Surroundings(controller=controller)
    assert unit_of(sync(uid="u1", deleting=True), UNIT, around).deletion_policy == policy
    assert unit_of(sync(uid="u1"), UNIT, around).deletion_policy == "Prune"


def test_values_are_the_hub_s_or_one_s_own() -> None:
    """What the hub resolved counts where it controls; else only what stands in the Sync itself."""
    bound = [{"name": "REGION", "value": "own"}]
    made = sync(values=[{"name": "REGION", "value": "eu"}], bindings=bound)
    assert variables(made, Surroundings(controller=assemblage())) == {"REGION": "eu"}
    assert variables(made, Surroundings()) == {"REGION": "own"}
    refers = sync(bindings=[{"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/name"}}])
    assert variables(refers, Surroundings(controller=assemblage())) == {}
    with pytest.raises(InputError, match="those are on the hub"):
        variables(refers, Surroundings())
