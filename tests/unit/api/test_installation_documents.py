"""The installation is a list of documents that can be applied in order, and printed."""

from collections.abc import Iterator
from typing import Any

from starling.api import KINDS, installation


def test_what_others_need_comes_first() -> None:
    """The namespace precedes what is in it, and each binding its role and account."""
    order = [each["kind"] for each in installation()]
    assert order[0] == "Namespace"
    assert order.index("ServiceAccount") < order.index("ClusterRoleBinding")
    assert order.index("ClusterRole") < order.index("ClusterRoleBinding")
    assert order.index("Role") < order.index("RoleBinding")


def test_every_kind_is_installed() -> None:
    """There is a CRD for each kind."""
    names = [each["metadata"]["name"] for each in installation() if each["kind"] == "CustomResourceDefinition"]
    assert names == [each.declaration.crd_name for each in KINDS]


def test_controller_and_agent_run() -> None:
    """With an image both run, under names that tell them apart; without one there are their accounts all the same."""
    running = [each for each in installation("image:1", "prod") if each["kind"] == "Deployment"]
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in running]
    names = {"controller": "prod", "agent": "prod-hub"}
    assert [each["args"][:3] for each in containers] == [[what, "--instance", name] for what, name in names.items()]
    assert {each["image"] for each in containers} == {"image:1"}
    users = [each["spec"]["template"]["spec"]["serviceAccountName"] for each in running]
    assert users == [each["metadata"]["name"] for each in installation() if each["kind"] == "ServiceAccount"]
    assert "Deployment" not in {each["kind"] for each in installation()}


def test_no_part_is_shared() -> None:
    """No list or map stands in two places, so that YAML needs no anchors."""
    documents = installation()
    parts = [id(part) for part in containers(documents)]
    assert len(parts) == len(set(parts))


def containers(value: Any) -> Iterator[Any]:
    """Every list and map in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)
