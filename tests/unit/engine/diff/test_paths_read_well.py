"""A path reads like what people write, and never like another path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.paths import Step, field_path, json_pointer, pointer_tokens
from starling.errors import InputError


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ([], ""),
        (["spec", "replicas"], "spec.replicas"),
        (
            ["spec", "template", "spec", "containers", {"name": "web"}, "image"],
            "spec.template.spec.containers[name=web].image",
        ),
        (["metadata", "labels", "app.kubernetes.io/name"], "metadata.labels[app.kubernetes.io/name]"),
        (["spec", "ports", {"port": 80, "protocol": "TCP"}], "spec.ports[port=80,protocol=TCP]"),
        (["metadata", "finalizers", {"": "example.org/keep"}], "metadata.finalizers[=example.org/keep]"),
        (["spec", "rules", 0, "host"], "spec.rules[0].host"),
        (["data", "0"], "data.0"),
        (["data", "a=b]"], 'data["a=b]"]'),
        (["data", ""], 'data[""]'),
        (["data", "\x1b[31m"], 'data["\\u001b[31m"]'),
        (["env", {"name": 'say "hi"'}, "value"], 'env[name="say \\"hi\\""].value'),
        (["sets", {"": {"b": [1], "a": None}}], 'sets[={"a":null,"b":[1]}]'),
    ],
)
def test_a_path_reads_like_what_people_write(steps: list[Step], path: str) -> None:
    """Names are joined by dots; items, and names with other signs in them, stand in brackets."""
    assert field_path(steps) == path


NAMES = st.text(alphabet='a.0/=,]["', max_size=3)


@given(*[st.lists(NAMES | st.integers(0, 2) | st.dictionaries(st.just("name"), NAMES, min_size=1), max_size=3)] * 2)
def test_different_paths_read_differently(one: list[Step], other: list[Step]) -> None:
    """No two ways to different fields print alike."""
    assert (field_path(one) == field_path(other)) is (one == other)


@given(st.lists(st.text(alphabet="a/~01", max_size=4)))
def test_a_pointer_leads_back_to_its_tokens(tokens: list[str]) -> None:
    """Slashes and tildes survive, and so do empty names."""
    assert pointer_tokens(json_pointer(tokens)) == tuple(tokens)


@pytest.mark.parametrize("pointer", ["spec/replicas", "spec.replicas", "/a~b", "/a~"])
def test_what_is_no_pointer_is_refused(pointer: str) -> None:
    """A path in another notation, or a tilde that escapes nothing, is bad input and says how it is written."""
    with pytest.raises(InputError, match="no JSON pointer") as caught:
        pointer_tokens(pointer)
    assert caught.value.hint
