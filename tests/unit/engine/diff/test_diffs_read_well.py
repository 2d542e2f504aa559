"""A diff is readable text, with or without colour, and a JSON document."""

import json
import re
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.diff import Effect, ObjectDiff, compare, diff_added, diff_removed, document, render
from starling.objects import ObjectKey


def named(kind: str, **content: Any) -> dict[str, Any]:
    """An object called default/web."""
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}


def test_fields_read_like_a_diff() -> None:
    """A header per object, then what goes and what comes, as YAML."""
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    before = named("Pod", spec={"replicas": 2, "version": "1", "env": env, "old": []})
    after = named("Pod", spec={"replicas": 3, "version": 1, "env": env[::-1], "new": {"a": [1, {"b": None}]}})
    assert render([compare(before, after)]) == (
        "Pod default/web\n"
        "- spec.replicas: 2\n"
        "+ spec.replicas: 3\n"
        '- spec.version: "1"\n'
        "+ spec.version: 1\n"
        "- spec.env (order): A, B\n"
        "+ spec.env (order): B, A\n"
        "- spec.old: []\n"
        "+ spec.new:\n"
        "+   a:\n"
        "+   - 1\n"
        "+   - b: null\n"
    )


def test_texts_of_many_lines_are_compared_by_line() -> None:
    """A file in a ConfigMap shows the lines that differ, and some around them."""
    lines = [f"line {number}" for number in range(20)]
    before = named("ConfigMap", data={"app.conf": "\n".join(lines) + "\n", "gone": "a\nb\n"})
    lines[10] = "changed"
    after = named("ConfigMap", data={"app.conf": "\n".join(lines)})
    assert render([compare(before, after)]) == (
        "ConfigMap default/web\n"
        "  data[app.conf]:\n"
        "@@ -8,7 +8,7 @@\n"
        "    line 7\n"
        "    line 8\n"
        "    line 9\n"
        "-   line 10\n"
        "+   changed\n"
        "    line 11\n"
        "    line 12\n"
        "    line 13\n"
        "@@ -17,4 +17,4 @@\n"
        "    line 16\n"
        "    line 17\n"
        "    line 18\n"
        "-   line 19\n"
        "+   line 19  (no newline at the end)\n"
        "- data.gone: |\n"
        "-   a\n"
        "-   b\n"
    )


def test_objects_that_come_go_or_are_refused_say_so() -> None:
    """The header has the effect, `!` comes before words about it, and what doesn't differ isn't mentioned."""
    refused = ObjectDiff(
        key=ObjectKey("", "Node", "", "n"), effect=Effect.REFUSED, message="spec: immutable\nreally", needs_force=True
    )
    same = compare(named("Service"), named("Service"))
    new, old = diff_added(named("Pod"), "namespace default doesn't exist yet"), diff_removed(named("Job"))
    metadata = "  metadata:\n    name: web\n    namespace: default\n"
    assert render([same, new, old, refused]) == (
        "Pod default/web (created)\n! namespace default doesn't exist yet\n+ apiVersion: v1\n+ kind: Pod\n"
        + metadata.replace("  ", "+ ", 1).replace("\n  ", "\n+ ")
        + "\nJob default/web (removed)\n- apiVersion: v1\n- kind: Job\n"
        + metadata.replace("  ", "- ", 1).replace("\n  ", "\n- ")
        + "\nNode n (would be refused)\n! spec: immutable\n! really\n"
        "! needs force: it would be deleted and created anew\n"
    )
    assert render([same]) == ""


TEXTS = st.text(alphabet="ab \t\n\r\x1b\x07\u202e\u2028é")


@given(TEXTS, TEXTS)
def test_colour_adds_nothing_but_colour(before: str, after: str) -> None:
    """The text is the same without it, and no value can steer the terminal."""
    diffs = [compare(named("ConfigMap", data={"a": before}), named("ConfigMap", data={"a": after}))]
    text, coloured = render(diffs), render(diffs, colour=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == text
    assert all(sign.isprintable() or sign in "\n\t" for sign in text)
    assert bool(text) is (before != after)


def test_a_document_is_json() -> None:
    """All there is to know, with what isn't there left out and null where the value is null."""
    diff = compare(named("Pod", spec={"a": 1, "b": None}), named("Pod", spec={"a": None, "c": [1]}))
    text = json.dumps(document(diff))
    assert json.loads(text) == {
        "group": "",
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "effect": "Changed",
        "changes": [
            {"path": "spec.a", "pointer": "/spec/a", "before": 1, "after": None},
            {"path": "spec.b", "pointer": "/spec/b", "before": None},
            {"path": "spec.c", "pointer": "/spec/c", "after": [1]},
        ],
        "message": "",
        "needsForce": False,
        "ownership": False,
    }
    assert msgspec.json.decode(msgspec.json.encode(document(diff))) == json.loads(text)
