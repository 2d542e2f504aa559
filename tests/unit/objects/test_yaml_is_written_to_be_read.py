"""What is written as YAML: plain where safe, quoted where not, in the order given."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.errors import InputError
from starling.objects import Manifest, digest, dump, dump_all, load_documents

LINES = st.text(alphabet="ab \t\n#:-'\"|>\r\u0085\u2028\ufeff\U0001f600", max_size=20)


def test_a_manifest_reads_as_people_write_it() -> None:
    """Keys keep their order, lists stand at their key's indent, text in lines is a block."""
    content = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "web", "labels": {}, "annotations": {"when": "22:22", "on": "yes"}},
        "data": {"a.conf": "one\n  two\n\n# three\n", "b": "x\ny", "c": "x\n\n", "image": "web:1.2.3", "cpu": "500m"},
        "list": [1, [2, [], ["a b"]], {"x": 1.5, "y": [None, True]}],
    }
    text = """\
kind: ConfigMap
apiVersion: v1
metadata:
  name: web
  labels: {}
  annotations:
    when: "22:22"
    "on": "yes"
data:
  a.conf: |
    one
      two

    # three
  b: |-
    x
    y
  c: |+
    x

  image: web:1.2.3
  cpu: 500m
list:
- 1
- - 2
  - []
  - - a b
- x: 1.5
  "y":
  - null
  - true
"""
    assert dump(content) == text
    assert dump(Manifest(content)) == text
    assert dump_all([Manifest(content), {"a": 1}]) == f"---\n{text}---\na: 1\n"


@pytest.mark.parametrize(
    "text",
    ["", " ", "yes", "N", "y", "Off", "null", "~", "1", "1e3", "0o14", "0x1f", "1_0", ".5", ".inf", "22:22",
     "2001-01-01", "1.2.3",
     "+1", "-", "- a", "---", "a: b", "a:", "a #b", "#a", " a", "a ", "a\t", "[a", "{a", "*a", "&a", "!a",
     "%a", "@a", "`a", "'a", '"a', "|", ">", "?", "=",
     "<<", "é", "a\rb", "a\x00", "\ufeff", "12e4", "1:2", "2001-01-01T00:00:00Z", "TRUE"],
)  # fmt: skip
def test_text_that_may_be_taken_for_something_else_is_quoted(text: str) -> None:
    """Numbers, booleans, times, signs, and what a line can't hold."""
    assert dump(text).startswith('"')
    assert dump({text: 1}).startswith('"')


@pytest.mark.parametrize(
    "text",
    ["web", "web-1", "a b", "app.kubernetes.io/name", "nginx:1.2", "500m", "128Mi", "a:b", "a#b",
     "http://x/y?z=1&w", "v1", "/a/b", "a{b}"],
)  # fmt: skip
def test_harmless_text_stays_plain(text: str) -> None:
    """Names, images, quantities, paths and links need no quotes."""
    assert dump(text) == f"{text}\n"


@given(text=LINES, other=LINES)
def test_lines_of_any_kind_come_back(text: str, other: str) -> None:
    """Line breaks, blanks and signs at any end survive, as values, items and keys."""
    for value in (text, [text, other], {text: other}, {"a": {"b": [{text: other, "c": text}]}}):
        [document] = load_documents(dump(value))
        assert document.value == value


@given(values=st.lists(st.dictionaries(LINES, LINES | st.floats(allow_nan=False, allow_infinity=False), min_size=1)))
def test_documents_come_back(values: list[dict[str, Any]]) -> None:
    """As many documents as were written, each the same."""
    assert [digest(d.value) for d in load_documents(dump_all(values))] == [digest(value) for value in values]


def test_long_keys_come_back() -> None:
    """A key longer than a parser looks ahead is written out as one."""
    value = {"a" * 2000: {"b" * 1024: [1], "c" * 899: 2}}
    [document] = load_documents(dump(value))
    assert document.value == value


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**64, -(2**63) - 1, {1: 2}, b"x", {1, 2}, "\ud800"])
def test_what_yaml_cannot_hold_is_refused(value: Any) -> None:
    """Nothing is written that would come back as something else."""
    with pytest.raises(InputError):
        dump({"a": [value]})


def test_bottomless_values_are_refused() -> None:
    """A value that contains itself ends in an error, not in a crash."""
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InputError, match="levels deep"):
        dump(value)
