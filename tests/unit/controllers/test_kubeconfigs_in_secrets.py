"""A kubeconfig in a Secret is read as data, and what is wrong with it is said without saying what it holds."""

import base64

import pytest

from starling.api import ObjectMeta
from starling.controllers.credentials import Secret, kubeconfig_in
from starling.errors import InputError
from starling.runtime import Key

KEY = Key("fleet", "edge")
GOOD = """
clusters: [{name: c, cluster: {server: https://edge.example}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def secret(**entries: str) -> Secret:
    """A Secret with these entries."""
    data = {name: base64.b64encode(value.encode()).decode() for name, value in entries.items()}
    return Secret(metadata=ObjectMeta(name="edge", namespace="fleet"), data=data)


def test_yaml_and_json_are_read() -> None:
    """The whole document comes back as values."""
    assert kubeconfig_in(secret(kubeconfig=GOOD), KEY)["current-context"] == "x"


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        pytest.param(None, "there is no Secret fleet/edge", id="no secret"),
        pytest.param(secret(config=GOOD), "has no entry kubeconfig", id="another entry"),
        pytest.param(secret(kubeconfig="hunter2: [unclosed"), "isn't a kubeconfig", id="no YAML"),
        pytest.param(secret(kubeconfig="hunter2"), "isn't a kubeconfig", id="a text"),
        pytest.param(secret(kubeconfig=GOOD + "---\n" + GOOD), "isn't a kubeconfig", id="two documents"),
        pytest.param(
            secret(kubeconfig=GOOD.replace("{token: hunter2}", "hunter2")), "isn't a kubeconfig", id="another shape"
        ),
        pytest.param(
            Secret(metadata=ObjectMeta(name="edge"), data={"kubeconfig": "§"}), "isn't a kubeconfig", id="no base64"
        ),
    ],
)
def test_what_is_wrong_is_said_and_not_what_it_holds(found: Secret | None, cause: str) -> None:
    """The error names the Secret and the cause."""
    with pytest.raises(InputError, match=cause) as error:
        kubeconfig_in(found, KEY)
    assert "fleet/edge" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_secret_does_not_print_what_it_holds() -> None:
    """Neither in logs nor in failing tests."""
    assert repr(secret(password="hunter2")) == "Secret(fleet/edge)"
