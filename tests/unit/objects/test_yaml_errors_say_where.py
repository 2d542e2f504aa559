"""What can't be read is refused with file, document and line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.objects import ManifestError, Origin, load_documents, load_manifests


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("a: 1\nb: [", "f.yaml:3 (document 1)", "did not find expected node content"),
        ("a: 1\n---\nb: 1\n\tc: 1", "f.yaml:4 (document 2)", "found a tab character that violates indentation"),
        ("a: 1\n---\nb:\n  c: 1\n  c: 2", "f.yaml:5 (document 2)", "key 'c' stands twice in one mapping"),
        ('a: 1\n---\n{"b": 1,\n "c": {\n\t"d": "\\"{,", "d": 2}}', "f.yaml:5 (document 2)", "key 'd' stands twice"),
        ('\n\n{"a": "\\ud83d\\ude00",\n"\\u0061": 2}', "f.yaml:4 (document 1)", "key 'a' stands twice in one mapping"),
        ('{"a": {"b": 1},\n"b": [{},\n-1e999]}', "f.yaml:3 (document 1)", "-1e999 is too large"),
        ('{"a":\n' + "[" * 200 + "]" * 200 + "}", "f.yaml:2 (document 1)", "nested more than 200 levels deep"),
        ('{"a": 1}'.encode("utf-16-le"), "f.yaml:1 (document 1)", "control characters are not allowed"),
        ("---\n---\n---\n1: a\n'1': b", "f.yaml:5 (document 1)", "key '1' stands twice in one mapping"),
        ("a: 1\n--- b: 2", "f.yaml:2", "something follows '---' on its line"),
        ("a: 1\n...\nb: 2", "f.yaml:3 (document 1)", "more follows after the document's end"),
        (
            "a:\n- *x",
            "f.yaml:2 (document 1)",
            "an alias has no anchor before it; a text that begins with * needs quotes",
        ),
        ("a: &x\n- *x", "f.yaml:2 (document 1)", "anchor &x contains itself"),
        ("a: 1\nb: .inf", "f.yaml:2 (document 1)", "JSON has no infinity and no NaN"),
        ("a: 1\n~: 2", "f.yaml:2 (document 1)", "null can't be a key"),
        ("a: 1\n? [b]\n: 2", "f.yaml:2 (document 1)", "a mapping or a sequence can't be a key"),
        ("a: 1\nb: !!int x", "f.yaml:2 (document 1)", "this is not a !!int"),
        ("a: 1\nb: !!binary x", "f.yaml:2 (document 1)", "!!binary is not base64"),
        ("a:\n  <<: 1", "f.yaml:2 (document 1)", "'<<' merges a mapping or a list of mappings"),
        ("a: 1\nb: \x01", "f.yaml:2 (document 1)", "control characters are not allowed"),
        (b"a: 1\nb: \xff", "f.yaml:2", "not UTF-8: invalid start byte"),
        ("a: 1\nb: \ud800", "f.yaml:2", "half of a surrogate pair is no text"),
        ("a: {{ .Values.x }}", "f.yaml:1 (document 1)", "a mapping or a sequence can't be a key"),
        ("a: 1\nb: " + "[" * 500, "f.yaml:2 (document 1)", "nested more than 200 levels deep"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "f.yaml:1 (document 1)", "nested more than 200 levels deep"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_errors_say_where(text: str | bytes, where: str, problem: str) -> None:
    """File, line and document come first, then the problem."""
    with pytest.raises(ManifestError) as caught:
        load_documents(text, "f.yaml")
    assert caught.value.message.startswith(f"{where}: {problem}")
    assert caught.value.origin.file == "f.yaml"


def test_an_error_without_a_file_still_has_its_line() -> None:
    """Text that comes from nowhere in particular is named by line and document."""
    with pytest.raises(ManifestError, match=r"^line 2 \(document 1\): "):
        load_documents("a: 1\na: 2")
    assert str(Origin()) == "manifest"
    assert str(Origin("f.yaml")) == "f.yaml"


def bomb(levels: int) -> str:
    """Nine aliases of nine aliases, and so on."""
    lines = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'lol'}]" for n in range(levels))
    return "\n".join(lines)


def test_alias_bombs_are_refused() -> None:
    """Aliases that multiply, aliases of one large text, and many documents of a few each all meet a bound."""
    with pytest.raises(ManifestError, match="aliases"):
        load_documents(bomb(12))
    with pytest.raises(ManifestError, match="aliases expand to more than 8000000 characters"):
        load_documents("a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 100 + "]")
    part = "a: &a [" + "x, " * 1000 + "]\nb: [" + "*a, " * 20 + "]\n"
    assert len(load_documents(part)) == 1
    with pytest.raises(ManifestError, match=r"\(document 24\): aliases expand"):
        load_documents("---\n".join([part] * 40))


def test_aliases_share_nothing() -> None:
    """Changing what one alias gave changes no other place."""
    [document] = load_documents("a: &x {k: [1]}\nb: *x\nc: {<<: *x}")
    document.value["b"]["k"].append(2)
    document.value["c"]["k"].append(3)
    assert document.value == {"a": {"k": [1]}, "b": {"k": [1, 2]}, "c": {"k": [1, 3]}}


def test_documents_know_their_place() -> None:
    """Lines count through the file, empty documents don't count."""
    documents = load_documents('# c\n---\na: 1\n---\n# c\n---\r\n\r\n\r\nb: 1\r\n---\n{"c":\n1}', "f")
    assert [(d.value, d.origin.document, d.origin.line) for d in documents] == [
        ({"a": 1}, 1, 3),
        ({"b": 1}, 2, 9),
        ({"c": 1}, 3, 11),
    ]


JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab\\"{}[],:\n\U0001f600'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["items", "a", ",", "\n"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(before=JSON, items=st.lists(JSON, max_size=4), after=JSON, indent=st.sampled_from([None, 0, 2, "\t"]))
def test_items_of_json_lists_know_their_lines(
    before: Any, items: list[Any], after: Any, indent: int | str | None
) -> None:
    """Whatever stands around and within them, and however it is indented."""
    text = "a: 1\n---\n\n{" + f'"x": {json.dumps(before, indent=indent)}, "items": ['
    lines = []
    for number, item in enumerate(items):
        text += ",\n" if number else "\n"
        lines.append(text.count("\n") + 1)
        text += json.dumps(item, indent=indent)
    text += f'], "y": {json.dumps(after, indent=indent)}' + "}"
    _, document = load_documents(text)
    assert document.value["items"] == items
    assert document.item_lines == tuple(lines)
    assert document.origin.line == 4


def test_an_objects_error_has_its_own_line_in_a_json_list() -> None:
    """Not the line of the list."""
    first = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}'
    text = f'{{"apiVersion": "v1", "kind": "List", "items": [\n{first},\n7]}}'
    with pytest.raises(ManifestError, match=r"^f\.json:3 \(document 1\): an item of List is no object"):
        load_manifests(text, "f.json")
