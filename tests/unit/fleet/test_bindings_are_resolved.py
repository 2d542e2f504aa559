"""Bindings become values of one cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.api.v1alpha1 import Binding, ObjectFieldReference
from starling.fleet import BindingError, resolve_bindings

CLUSTER = {
    "metadata": {"name": "eu-1", "labels": {"region": "eu", "a/b": "slash", "x~y": "tilde"}, "annotations": {}},
    "spec": {"mode": "Active", "nodes": 3, "big": True, "pull": {}},
}


def resolved(*bindings: Binding) -> dict[str, str]:
    """The values by name."""
    return {value.name: value.value for value in resolve_bindings(bindings, CLUSTER)}


def text(name: str, value: str) -> Binding:
    """A binding to a text."""
    return Binding(name=name, value=value)


def of_field(name: str, pointer: str) -> Binding:
    """A binding to a field of the Cluster."""
    return Binding(name=name, object_field_ref=ObjectFieldReference(field_path=pointer))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        ("$(CLUSTER_NAME).test", "eu-1.test"),
        ("$(REGION)-$(REGION)", "eu-eu"),
        ("$$(REGION)", "$(REGION)"),
        ("$REGION ${REGION} $ $$ $(", "$REGION ${REGION} $ $$ $("),
        ("$(date +%s)", "$(date +%s)"),
        ("", ""),
    ],
)
def test_names_stand_for_values(written: str, value: str) -> None:
    """$(NAME) stands for a value, $$(NAME) for itself, and other dollars for nothing else."""
    assert resolved(text("X", written), of_field("REGION", "/metadata/labels/region"))["X"] == value


def test_the_clusters_name_comes_first() -> None:
    """CLUSTER_NAME is always bound, and the others follow as written."""
    assert list(resolved(text("B", "$(A)"), text("A", "1"))) == ["CLUSTER_NAME", "B", "A"]
    assert resolved() == {"CLUSTER_NAME": "eu-1"}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/metadata/labels/a~1b", "slash"),
        ("/metadata/labels/x~0y", "tilde"),
        ("/spec/nodes", "3"),
        ("/spec/big", "true"),
    ],
)
def test_fields_are_found_by_pointer(pointer: str, value: str) -> None:
    """A pointer's ~0 and ~1 are what JSON pointers say; numbers and booleans are written as JSON has them."""
    assert resolved(of_field("X", pointer))["X"] == value


def test_what_a_field_says_is_no_template() -> None:
    """A label's value is taken as it is: whoever may set it can't reach other bindings."""
    cluster = {"metadata": {"name": "c", "labels": {"x": "$(SECRET)"}}}
    values = resolve_bindings([of_field("X", "/metadata/labels/x"), text("SECRET", "s")], cluster)
    assert values[1].value == "$(SECRET)"


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        pytest.param([text("A", "$(B)"), text("B", "$(C)"), text("C", "$(B)")], "B → C → B", id="circle"),
        pytest.param([text("A", "$(A)")], "A → A", id="itself"),
        pytest.param([text("A", "$(NOPE)")], r"A mentions \$\(NOPE\)", id="dangling"),
        pytest.param(
            [of_field("A", "/metadata/labels/zone")], "Cluster eu-1 has no field /metadata/labels/zone", id="gone"
        ),
        pytest.param([of_field("A", "/spec/mode/deeper")], "no field /spec/mode/deeper", id="too deep"),
        pytest.param([of_field("A", "/spec/pull")], "is no text", id="mapping"),
        pytest.param([text("CLUSTER_NAME", "x")], "CLUSTER_NAME is always", id="taken"),
    ],
)
def test_what_has_no_value_is_named(bindings: list[Binding], said: str) -> None:
    """Circles are told with their path, names and fields that aren't there by name."""
    with pytest.raises(BindingError, match=said):
        resolved(*bindings)


def test_doubling_ends() -> None:
    """Bindings that double one another are refused before they fill the memory."""
    doubling = [text(f"A{number}", f"$(A{number + 1})$(A{number + 1})") for number in range(60)]
    with pytest.raises(BindingError, match="longer than 4096"):
        resolved(*doubling, text("A60", "x"))


@given(st.permutations([text("A", "$(B)$(C)"), text("B", "<$(C)>"), text("C", "c"), text("D", "$(A)")]))
def test_order_means_nothing(bindings: list[Binding]) -> None:
    """A binding may mention one that is written after it."""
    expected = {"A": "<c>c", "B": "<c>", "C": "c", "D": "<c>c", "CLUSTER_NAME": "eu-1"}
    assert resolved(*bindings) == expected
