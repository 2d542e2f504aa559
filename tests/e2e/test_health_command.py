"""`starling health` tells of objects in files how ready they are."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Starling

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 2}
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1}
"""
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
"""
BROKEN = """
apiVersion: x.dev/v1
kind: Widget
metadata: {name: broken}
status:
  conditions: [{type: Stalled, status: "True", message: "two\\nlines"}]
"""
AS_KUBECTL_LISTS = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": "Succeeded"}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "status": {"phase": "Odd"}},
        ],
    }
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two files, of two objects and of one."""
    contents = {"first.yaml": f"{WEB}---{SETTINGS}", "second.yaml": BROKEN}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return [str(tmp_path / name) for name in contents]


ANSWERS = [
    {"status": "InProgress", "message": "Updated: 1/3"},
    {"status": "Current", "message": "Resource is always ready"},
    {"status": "Failed", "message": "two\nlines"},
]


@pytest.mark.parametrize("repeat", ["-f", None], ids=["-f a -f b", "-f a b"])
def test_one_line_of_json_per_object(starling: Starling, files: list[str], repeat: str | None) -> None:
    """In the order of files and documents, status and message only; sick objects don't make the command fail."""
    between = [repeat] if repeat else []
    done = starling("health", "--rules", "kstatus", "-f", files[0], *between, files[1], "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == ANSWERS
    assert done.stdout.startswith('{"status":"InProgress","message":')


def test_a_table_for_people(starling: Starling, files: list[str]) -> None:
    """Objects by name, one line each whatever the message, kstatus without being asked for."""
    done = starling("health", "-f", files[0], "-f", files[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "OBJECT                    STATUS      MESSAGE",
        "Deployment.apps shop/web  InProgress  Updated: 1/3",
        "ConfigMap shop/settings   Current     Resource is always ready",
        "Widget.x.dev broken       Failed      two lines",
    ]


def test_lists_from_kubectl_on_stdin(starling: Starling) -> None:
    """What `kubectl get -o json` prints is taken apart; malformed objects are Unknown and say why."""
    done = starling("health", "-f", "-", "-o", "json", stdin=AS_KUBECTL_LISTS)
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["Current", "Unknown"]
    assert json.loads(done.stdout.splitlines()[1])["message"] == "unknown phase Odd"


def test_nothing_to_tell(starling: Starling) -> None:
    """No objects, no lines, and a word on stderr."""
    done = starling("health", "-f", "-", "-o", "json", stdin="# nothing\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "there are no objects\n")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (
            ["-f", "-", "--rules", "nonsense"],
            2,
            ["error: there are no health rules 'nonsense'", "hint: --rules takes kstatus"],
        ),
        (["-f", "-"], 2, ["error: stdin", "kind is missing"]),
        (["-f", "/nowhere.yaml"], 3, ["error: /nowhere.yaml: No such file"]),
        ([], 2, ["Missing option", "-f"]),
    ],
    ids=["unknown rules", "no object", "no file", "no -f"],
)
def test_a_wrong_call_says_what_is_wrong(starling: Starling, arguments: list[str], code: int, told: list[str]) -> None:
    """Bad rules, files that hold no objects and files that aren't there are told apart."""
    done = starling("health", *arguments, stdin="apiVersion: v1")
    assert (done.returncode, done.stdout) == (code, "")
    for words in told:
        assert words in done.stderr


def test_the_same_object_may_be_there_twice(starling: Starling) -> None:
    """As in the answers of two clusters, one after the other; nor need it have a name."""
    done = starling("health", "-f", "-", stdin=f"{WEB}---{WEB}---\napiVersion: v1\nkind: ConfigMap\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [
        ["Deployment.apps", "shop/web", "InProgress"],
        ["Deployment.apps", "shop/web", "InProgress"],
        ["ConfigMap", "Current", "Resource"],
    ]
