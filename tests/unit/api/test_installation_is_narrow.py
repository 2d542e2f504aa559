"""What `starling install` grants is what the kinds need, and no more."""

from typing import Any

from starling.api import CONTROLLER, KINDS, PLATFORM_NAMESPACE, installation

PLURALS = [each.declaration.plural for each in KINDS]


def documents(kind: str) -> list[dict[str, Any]]:
    """What is installed of a kind."""
    return [each for each in installation() if each["kind"] == kind]


def rules_of(kind: str, name: str) -> list[dict[str, Any]]:
    """The rules of one role."""
    (role,) = [each for each in documents(kind) if each["metadata"]["name"] == name]
    rules: list[dict[str, Any]] = role["rules"]
    return rules


def test_no_role_has_a_wildcard_or_secrets() -> None:
    """No rule of any role says *, and none reaches Secrets."""
    rules = [rule for kind in ("Role", "ClusterRole") for role in documents(kind) for rule in role["rules"]]
    assert len(rules) == 6
    words = {word for rule in rules for values in rule.values() for word in values}
    assert "*" not in words
    assert "secrets" not in words


def test_the_controller_writes_nothing_but_status_of_our_kinds() -> None:
    """On our kinds the controller may read objects and patch status."""
    ours = [rule for rule in rules_of("ClusterRole", CONTROLLER) if rule["apiGroups"] == ["starling.dev"]]
    assert ours == [
        {"apiGroups": ["starling.dev"], "resources": PLURALS, "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["starling.dev"], "resources": [f"{each}/status" for each in PLURALS], "verbs": ["patch"]},
    ]


def test_leases_are_granted_in_the_platform_namespace_alone() -> None:
    """Leases are in the Role of the platform namespace, and in no ClusterRole."""
    everywhere = [rule for role in documents("ClusterRole") for rule in role["rules"]]
    assert all("leases" not in rule["resources"] for rule in everywhere)
    assert [role["metadata"]["namespace"] for role in documents("Role")] == [PLATFORM_NAMESPACE]
    assert rules_of("Role", CONTROLLER)[0]["resources"] == ["leases"]
