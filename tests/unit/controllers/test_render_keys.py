"""A render is used again if, and only if, nothing that matters to it has changed."""

from typing import Any

import pytest

from starling.api.v1alpha1 import CredentialsReference, ExactGit
from starling.controllers.renders import packed_manifests, part_name, unpacked_manifests
from starling.controllers.sync_manifests import render_key
from starling.objects import Manifest, Origin
from starling.rendering import Package, Request

GIT: dict[str, Any] = {"url": "https://git.example/x", "commit": "1" * 40}
VALUES = {"values": [{"a": 1}], "release_name": "r", "namespace": "n", "kube_version": "1.30.0"}


def key(git: dict[str, Any] | None = None, named: dict[str, str] | None = None, **request: Any) -> str:
    """The key of a request."""
    return render_key(ExactGit(**{**GIT, **(git or {})}), Request(**request), named or {})


@pytest.mark.parametrize(
    "other",
    [
        {"git": {"commit": "2" * 40}},
        {"git": {"url": "https://git.example/y"}},
        {"git": {"submodules": True}},
        {"git": {"ignore": ("docs",)}},
        {"named": {"A": "1"}},
        {"path": "apps"},
        {"package": Package.PLAIN},
        {"patches": [{"patch": "[]", "target": {"kind": "Deployment"}}]},
        *({name: value} for name, value in VALUES.items()),
    ],
    ids=str,
)
def test_what_matters_makes_another_key(other: dict[str, Any]) -> None:
    """Source, path, package, values and variables are all in the key."""
    assert key(**other) != key()


def test_what_does_not_matter_makes_the_same_key() -> None:
    """Neither credentials nor the tag's name, nor, where it is no chart, what only charts heed."""
    told = {"tag": "v1", "secret_ref": CredentialsReference(name="c")}
    assert key(told) == key()
    assert key(package=Package.PLAIN, namespace="n", kube_version="1.30.0") == key(package=Package.PLAIN)


def test_manifests_are_packed_the_same_each_time() -> None:
    """The same manifests are the same bytes, and come back with where they stood."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ä"}, "data": {"x": "1"}, "n": 1.5}
    manifests = [Manifest(content, Origin("a.yaml", 2, 3))]
    assert packed_manifests(manifests) == packed_manifests(manifests)
    assert unpacked_manifests(packed_manifests(manifests)) == manifests


def test_long_names_are_shortened_and_stay_apart() -> None:
    """No name of a Secret is too long, and no two Syncs share one."""
    one, two = "a" * 252 + "x", "a" * 252 + "y"
    assert part_name("web", 3) == "starling-render-web-3"
    assert part_name(one, 0) != part_name(two, 0)
    assert len(part_name(one, 999)) <= 253
