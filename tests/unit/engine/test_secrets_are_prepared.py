"""A Secret as it will be applied: its stringData in data, and nothing that the API server would refuse."""

from typing import Any

import pytest

from starling.engine.prepare import prepare
from starling.objects import Manifest, ManifestError, Origin
from tests.unit.engine.test_manifests_are_prepared import KINDS, UNIT, only, prepared


def test_string_data_becomes_data() -> None:
    """In base64, over what data says of the same key, as the API server does."""
    content = only("""
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {a: eA==, b: eA==}
stringData: {b: ü, c: ""}
""")
    assert content["data"] == {"a": "eA==", "b": "w7w=", "c": ""}
    assert "stringData" not in content


@pytest.mark.parametrize("rest", ["", ", stringData: null", ", stringData: {}"])
def test_a_secret_without_string_data_keeps_its_data(rest: str) -> None:
    """Empty values too."""
    content = only(f"{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, data: {{a: eA==, b: }}{rest}}}")
    assert content["data"] == {"a": "eA==", "b": None}
    assert "stringData" not in content


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("stringData: {pin: 271828}", r'stringData\["pin"\] of Secret a is not text'),
        ("stringData: {pin: }", r'stringData\["pin"\] of Secret a is not text'),
        ("stringData: [271828]", "stringData of Secret a is not a mapping"),
        ("data: {pin: [271828]}", r'data\["pin"\] of Secret a is not text'),
        ("data: 271828", "data of Secret a is not a mapping"),
    ],
)
def test_a_secret_of_other_than_text_is_refused(field: str, problem: str) -> None:
    """By the key's name; the value is told to nobody."""
    with pytest.raises(ManifestError, match=r"^f\.yaml:1 \(document 1\): " + problem) as caught:
        prepared(f"{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, {field}}}")
    assert "271828" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("value", ["", "aHVudGVyMg==", "aHVudGVy\nMg==\n", "aHVu\r\nZGVy", "aH=\n=", "+/+/", "aB=="])
def test_base64_as_the_api_server_reads_it(value: str) -> None:
    """Lines may end anywhere, and the bits that are over needn't be zero."""
    manifest = Manifest({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"pin": value}})
    [desired] = prepare([manifest], UNIT, KINDS).desired
    assert desired.manifest.content["data"] == {"pin": value}


@pytest.mark.parametrize(
    "value", ["hunter22!", "aHVudGVyMg", "aHVudGVyMg=", "aHVu ZGVy", "aHVudGVyMg===", "_-_-", "=", "ü"]
)
@pytest.mark.parametrize("more", [{}, {"stringData": {"pin": "over it"}}])
def test_what_is_no_base64_is_refused(value: str, more: dict[str, Any]) -> None:
    """By object, key and place, with the way out, and the value isn't told."""
    content = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"ok": "", "pin": value}}
    with pytest.raises(ManifestError, match=r'^f\.yaml: data\["pin"\] of Secret a is not base64$') as caught:
        prepare([Manifest({**content, **more}, Origin("f.yaml"))], UNIT, KINDS)
    assert caught.value.hint == "stringData takes text as it is"
