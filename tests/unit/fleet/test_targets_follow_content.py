"""A target changes with what is synced and how, and with nothing else."""

import pytest
from msgspec.structs import replace

from starling.api.v1alpha1 import (
    Binding,
    CredentialsReference,
    ExactGit,
    HelmPackage,
    LabelSelector,
    ModuleOverride,
    ModuleSpec,
    Package,
    PolicyReference,
    Rollout,
    SourceReference,
    SyncTemplate,
)
from starling.fleet import paths_used, target_of

TEMPLATE = SyncTemplate(source=SourceReference(name="platform"), path="app", package=Package(helm=HelmPackage()))
OVERRIDE = ModuleOverride(selector=LabelSelector(match_labels={"ring": "canary"}), path="canary")
SPEC = ModuleSpec(selector=LabelSelector(), sync=TEMPLATE, overrides=(OVERRIDE,))
CONTENTS = {"app": "sha256:1", "canary": "sha256:2"}
GIT = ExactGit(url="https://git.test/a", commit="a" * 40)
TARGET = "t1:54286852db377ffe6a0df4ab9e36d9a0de321e0106e732693f9b96c3f5e8f2a7"


def with_template(**changes: object) -> ModuleSpec:
    """The Module with another template."""
    return replace(SPEC, sync=replace(TEMPLATE, **changes))


def test_every_path_is_used_once() -> None:
    """The Module's path and those of its overrides; an override without one uses the Module's."""
    same = ModuleOverride(selector=LabelSelector(), path="app")
    none = ModuleOverride(selector=LabelSelector(), values={"a": 1})
    assert paths_used(replace(SPEC, overrides=(same, none, OVERRIDE))) == ("app", "canary")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(with_template(source=SourceReference(name="other")), id="source"),
        pytest.param(
            with_template(source=SourceReference(git=ExactGit(url="https://git.test/a", commit="a" * 40))), id="commit"
        ),
        pytest.param(with_template(revision="v1@sha1:1"), id="revision"),
        pytest.param(replace(SPEC, selector=LabelSelector(match_labels={"a": "b"})), id="selector"),
        pytest.param(replace(SPEC, rollout=Rollout(max_concurrent=1)), id="rollout"),
        pytest.param(replace(SPEC, policy_ref=PolicyReference(name="safe")), id="policyRef"),
        pytest.param(replace(SPEC, suspend=True), id="suspend"),
        pytest.param(with_template(prune=True, interval="1h"), id="defaults said"),
    ],
)
def test_where_from_and_to_whom_moves_nothing(spec: ModuleSpec) -> None:
    """Selectors, policies and what a Source is called are no part of a target, nor is a default that is said."""
    assert target_of(spec, CONTENTS, GIT) == target_of(SPEC, CONTENTS, GIT)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(with_template(prune=False), id="prune"),
        pytest.param(with_template(bindings=(Binding(name="A", value="1"),)), id="bindings"),
        pytest.param(with_template(package=Package(helm=HelmPackage(values={"a": 1}))), id="values"),
        pytest.param(with_template(service_account_name="other"), id="account"),
        pytest.param(replace(SPEC, overrides=()), id="overrides"),
        pytest.param(replace(SPEC, overrides=(replace(OVERRIDE, selector=LabelSelector()),)), id="override's selector"),
        pytest.param(
            replace(SPEC, overrides=(ModuleOverride(selector=LabelSelector()), OVERRIDE)), id="more overrides"
        ),
    ],
)
def test_instructions_move_it(spec: ModuleSpec) -> None:
    """How a thing is synced is part of its target."""
    assert target_of(spec, CONTENTS, GIT) != target_of(SPEC, CONTENTS, GIT)


def test_the_repository_and_its_credentials_move_it() -> None:
    """Clusters need to know both; the commit alone moves nothing."""
    told = target_of(SPEC, CONTENTS, GIT)
    assert target_of(SPEC, CONTENTS, replace(GIT, commit="b" * 40, tag="v2")) == told
    assert target_of(SPEC, CONTENTS, replace(GIT, url="https://git.test/b")) != told
    assert target_of(SPEC, CONTENTS, replace(GIT, secret_ref=CredentialsReference(name="new"))) != told


def test_content_moves_it() -> None:
    """So is the content of each path used, and of no other."""
    assert target_of(SPEC, CONTENTS | {"canary": "sha256:3"}, GIT) != target_of(SPEC, CONTENTS, GIT)
    assert target_of(SPEC, CONTENTS | {"app": "sha256:2", "canary": "sha256:1"}, GIT) != target_of(SPEC, CONTENTS, GIT)
    assert target_of(SPEC, CONTENTS | {"docs": "sha256:3"}, GIT) == target_of(SPEC, CONTENTS, GIT)


def test_the_scheme_stays_what_it_is() -> None:
    """A target is the same in every version of Starling: a new one rolls nothing out."""
    assert target_of(SPEC, CONTENTS, GIT) == TARGET
