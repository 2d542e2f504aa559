"""What `starling install` grants is what the kinds need, and no more."""

from typing import Any

from starling.api import CONTROLLER, KINDS, PLATFORM_NAMESPACE, installation
from starling.api.enrolment import AGENT, agent_installation

WRITTEN = ["sources", "clusters", "modules", "syncgroups", "proxyassemblages"]
PLURALS = [each.declaration.plural for each in KINDS]


def documents(kind: str) -> list[dict[str, Any]]:
    """What is installed of a kind."""
    return [each for each in installation() if each["kind"] == kind]


def rules_of(kind: str, name: str) -> list[dict[str, Any]]:
    """The rules of one role."""
    (role,) = [each for each in documents(kind) if each["metadata"]["name"] == name]
    rules: list[dict[str, Any]] = role["rules"]
    return rules


def test_no_role_has_a_wildcard() -> None:
    """No rule of any role says *."""
    rules = [rule for kind in ("Role", "ClusterRole") for role in documents(kind) for rule in role["rules"]]
    assert len(rules) > 6
    assert "*" not in {word for rule in rules for values in rule.values() for word in values}


def test_secrets_are_the_controllers_alone() -> None:
    """Nobody else gets at Secrets by what is installed, and the controller deletes none."""
    reaching = {
        role["metadata"]["name"]: rule["verbs"]
        for kind in ("Role", "ClusterRole")
        for role in documents(kind)
        for rule in role["rules"]
        if "secrets" in rule["resources"]
    }
    assert reaching == {CONTROLLER: ["get", "list", "watch", "create", "patch"]}


def test_the_controller_writes_no_spec_but_those_that_are_its_own() -> None:
    """On our kinds it reads objects and patches status; it makes proxies and Syncs, and patches metadata of others."""
    ours = [rule for rule in rules_of("ClusterRole", CONTROLLER) if rule["apiGroups"] == ["starling.dev"]]
    assert ours == [
        {"apiGroups": ["starling.dev"], "resources": PLURALS, "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["starling.dev"], "resources": [f"{each}/status" for each in WRITTEN], "verbs": ["patch"]},
        {"apiGroups": ["starling.dev"], "resources": ["proxyassemblages"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": ["starling.dev"], "resources": ["clusters", "modules", "syncgroups"], "verbs": ["patch"]},
        {"apiGroups": ["starling.dev"], "resources": ["syncs"], "verbs": ["create", "delete", "patch"]},
    ]


def test_the_agent_is_what_it_is_on_clusters() -> None:
    """It has the account and the rights that agents have everywhere, and the controller none of them."""
    bindings = {each["metadata"]["name"]: each for each in documents("ClusterRoleBinding")}
    assert bindings.keys() == {AGENT, CONTROLLER}
    everywhere = [each for each in agent_installation("image:1") if each["kind"] == "ClusterRoleBinding"]
    assert everywhere == [bindings[AGENT]]
    assert [each["name"] for each in bindings[AGENT]["subjects"]] == [AGENT]


def test_leases_are_written_in_the_platform_namespace_alone() -> None:
    """Everywhere else Leases are only read."""
    everywhere = [rule for role in documents("ClusterRole") for rule in role["rules"] if "leases" in rule["resources"]]
    assert [rule["verbs"] for rule in everywhere] == [["get", "list", "watch"]]
    assert [role["metadata"]["namespace"] for role in documents("Role")] == [PLATFORM_NAMESPACE]
    assert rules_of("Role", CONTROLLER)[0]["resources"] == ["leases"]
