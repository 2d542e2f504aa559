"""Keys and kinds: how they are read, compared and printed."""

import msgspec
import pytest

from starling.errors import InputError
from starling.objects import GroupVersionKind, ObjectKey


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ObjectKey("apps", "Deployment", "default", "web"), "Deployment.apps default/web"),
        (ObjectKey("", "Pod", "default", "web-0"), "Pod default/web-0"),
        (ObjectKey("", "Namespace", "", "web"), "Namespace web"),
    ],
    ids=["grouped", "core", "cluster-scoped"],
)
def test_a_key_prints_as_people_say_it(key: ObjectKey, text: str) -> None:
    """Kind and group, then namespace and name."""
    assert str(key) == text


def test_keys_are_values() -> None:
    """Equal keys are one in a set, keys sort by group, kind, namespace, name, and travel as short lists."""
    key = ObjectKey("apps", "Deployment", "default", "web")
    assert {key, ObjectKey("apps", "Deployment", "default", "web")} == {key}
    assert min(key, ObjectKey("", "Pod", "z", "z")).kind == "Pod"
    assert msgspec.json.encode(key) == b'["apps","Deployment","default","web"]'
    with pytest.raises(AttributeError):
        key.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(("api_version", "group", "version"), [("v1", "", "v1"), ("apps/v1", "apps", "v1")])
def test_api_versions_split_and_join(api_version: str, group: str, version: str) -> None:
    """A group and a version, or the core group's version alone."""
    gvk = GroupVersionKind.from_api_version(api_version, "Kind")
    assert gvk == GroupVersionKind(group, version, "Kind")
    assert gvk.api_version == api_version
    assert str(gvk) == f"{api_version} Kind"


@pytest.mark.parametrize("api_version", ["", "a/b/c", "/v1", "apps/", "/"])
def test_odd_api_versions_are_refused(api_version: str) -> None:
    """Neither empty parts nor two slashes."""
    with pytest.raises(InputError, match="apiVersion"):
        GroupVersionKind.from_api_version(api_version, "Kind")
