"""A real API server refuses wrong objects with a message that says why, and fills in the defaults of right ones."""

import json
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest

from starling.api import KINDS, RolloutPolicy, Source, crds

Kubectl = Callable[..., CompletedProcess[str]]
Spec = dict[str, Any]

URL = "https://git.example/platform.git"
EVERYWHERE: Spec = {"selector": {}}
APPLY = ("apply", "--server-side", "-o", "json", "-f", "-")


@pytest.fixture(scope="module", autouse=True)
def served(kubectl: Kubectl) -> Iterator[None]:
    """The API server has our kinds, and none of this module's objects afterwards."""
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds()})
    assert kubectl("apply", "--server-side", "-f", "-", input=document).returncode == 0
    names = [f"crd/{each.declaration.crd_name}" for each in KINDS]
    assert kubectl("wait", "--for=condition=Established", "--timeout=30s", *names).returncode == 0
    yield
    kubectl("delete", "source/tried", "rolloutpolicy/tried", "sync/tried", "--ignore-not-found")


def manifest(kind: str, spec: Spec) -> str:
    """An object of ours, as JSON."""
    metadata = {"name": "tried", "namespace": "default"}
    return json.dumps({"apiVersion": "starling.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})


def git(ref: Spec | None = None, **more: Any) -> Spec:
    """A Source's spec, right but for what is given."""
    return {"git": {"url": URL, "ref": ref or {"branch": "main"}} | more}


def stage(**more: Any) -> Spec:
    """A RolloutPolicy's spec with one stage, right but for what is given."""
    return {"stages": [{"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}} | more]}


def expression(**requirement: Any) -> Spec:
    """A RolloutPolicy's spec with one match expression."""
    return stage(selector={"matchExpressions": [{"key": "region"} | requirement]})


def window(**more: Any) -> Spec:
    """A RolloutPolicy's spec with one window."""
    return {"windows": [more]}


NO_URL = "must be an https://, http://, ssh:// or file:/// URL or user@host:path"
ONE_REF = "set exactly one of branch, tag, semver, commit"
GIT_NAME = "must be a name that git allows"
SHARE = "must be a number of at least 1 (without quotes), or a percentage from 1% to 100%"
FAILURES = "must be a number of at least 0 (without quotes), or a percentage from 0% to 100%"
VALUES = "In and NotIn take values; Exists and DoesNotExist take none"
RANGE = "must be a range of versions"
KEYS = "must have keys that labels can have, such as region or example.com/region"
ZONE = "must be a time zone of the IANA database"

BAD_SOURCES: dict[str, tuple[Spec, str]] = {
    "nothing": ({}, "spec.git: Required value"),
    "no ref": ({"git": {"url": URL}}, "spec.git.ref: Required value"),
    "empty ref": ({"git": {"url": URL, "ref": {}}}, ONE_REF),
    "branch and tag": (git({"branch": "main", "tag": "v1"}), ONE_REF),
    "all four": (git({"branch": "a", "tag": "b", "semver": "1", "commit": "0" * 40}), ONE_REF),
    "empty branch": (git({"branch": ""}), "should be at least 1 chars long"),
    "option-like branch": (git({"branch": "--upload-pack=x"}), GIT_NAME),
    "branch with dots": (git({"branch": "a..b"}), GIT_NAME),
    "branch with a space": (git({"branch": "a b"}), GIT_NAME),
    "tag with a colon": (git({"tag": "a:b"}), GIT_NAME),
    "tag as a lock": (git({"tag": "v1.lock"}), GIT_NAME),
    "branch below a lock": (git({"branch": "a.lock/b"}), GIT_NAME),
    "branch with two slashes": (git({"branch": "a//b"}), GIT_NAME),
    "branch with a hidden part": (git({"branch": "a/.b"}), GIT_NAME),
    "branch that ends in a dot": (git({"branch": "a."}), GIT_NAME),
    "branch that ends in a slash": (git({"branch": "a/"}), GIT_NAME),
    "branch with a control character": (git({"branch": "a\x01b"}), GIT_NAME),
    "branch with a NUL": (git({"branch": "a\0b"}), GIT_NAME),
    "branch with a delete character": (git({"branch": "a\x7fb"}), GIT_NAME),
    "branch with a last newline": (git({"branch": "a\n"}), GIT_NAME),
    "branch with a reflog": (git({"branch": "a@{1}"}), GIT_NAME),
    "branch @": (git({"branch": "@"}), GIT_NAME),
    "branch HEAD": (git({"branch": "HEAD"}), GIT_NAME),
    "short commit": (git({"commit": "abc1234"}), "must be a full commit id: 40 (sha1) or 64 (sha256)"),
    "upper-case commit": (git({"commit": "A" * 40}), "must be a full commit id"),
    "shell in semver": (git({"semver": "$(id)"}), RANGE),
    "space as semver": (git({"semver": " "}), RANGE),
    "or as semver": (git({"semver": "||"}), RANGE),
    "word as semver": (git({"semver": "latest"}), RANGE),
    "word with an x as semver": (git({"semver": "next"}), RANGE),
    "word in semver": (git({"semver": ">=1.2 || latest"}), RANGE),
    "option-like url": (git(url="--upload-pack=touch /tmp/x"), NO_URL),
    "ext url": (git(url="ext::sh -c id"), NO_URL),
    "ext url without spaces": (git(url="ext::id"), NO_URL),
    "option-like host": (git(url="ssh://-oProxyCommand=id/x"), NO_URL),
    "option-like scp host": (git(url="git@-oProxyCommand=id:x"), NO_URL),
    "option-like scp user": (git(url="-oProxyCommand=id@host:x"), NO_URL),
    "option-like scp path": (git(url="git@host:-x"), NO_URL),
    "password in url": (git(url="https://me:secret@git.example/x.git"), "credentials belong in secretRef"),
    "token in url": (git(url="https://ghp_secret@git.example/x.git"), "credentials belong in secretRef"),
    "token in http url": (git(url="http://secret@git.example/x.git"), "no user in http and https URLs"),
    "empty user in url": (git(url="https://@git.example/x.git"), NO_URL),
    "password in ssh url": (git(url="ssh://git:secret@git.example/x.git"), NO_URL),
    "relative path": (git(url="../x"), NO_URL),
    "git protocol": (git(url="git://git.example/x.git"), NO_URL),
    "two lines": (git(url=f"{URL}\nx"), NO_URL),
    "long url": (git(url=URL + "x" * 2048), "Too long: may not be more than 2048"),
    "secret without a name": (git(secretRef={}), "spec.git.secretRef.name: Required value"),
    "secret of another namespace": (git(secretRef={"name": "a/b"}), "should match"),
    "verify without keys": (git(verify={}), "spec.git.verify.secretRef: Required value"),
    "interval in words": (git() | {"interval": "often"}, "must be a duration such as 30s, 5m or 1h30m, at least 1s"),
    "interval without a unit": (git() | {"interval": "60"}, "must be a duration such as"),
    "interval of zero": (git() | {"interval": "0s"}, "at least 1s"),
    "interval below zero": (git() | {"interval": "-1m"}, "must be a duration such as"),
    "interval beyond Go's": (git() | {"interval": "99999999999999h"}, "must be a duration such as"),
    "interval of many parts": (git() | {"interval": "1h" * 11}, "Too long: may not be more than 20"),
    "archive": (git() | {"archive": {"url": URL}}, 'unknown field "spec.archive"'),
    "suspend as text": (git() | {"suspend": "no"}, "must be of type boolean"),
}
BAD_POLICIES: dict[str, tuple[Spec, str]] = {
    "maxConcurrent -1": ({"maxConcurrent": -1}, SHARE),
    "maxConcurrent 0": ({"maxConcurrent": 0}, SHARE),
    "maxConcurrent 0%": ({"maxConcurrent": "0%"}, SHARE),
    "maxConcurrent 150%": ({"maxConcurrent": "150%"}, SHARE),
    "maxConcurrent 1000%": ({"maxConcurrent": "1000%"}, SHARE),
    "maxConcurrent abc": ({"maxConcurrent": "abc"}, SHARE),
    "maxConcurrent as text": ({"maxConcurrent": "3"}, SHARE),
    "maxConcurrent ab%": ({"maxConcurrent": "ab%"}, "should match '^(100|[1-9][0-9]?)%$'"),
    "maxConcurrent -5%": ({"maxConcurrent": "-5%"}, "should match '^(100|[1-9][0-9]?)%$'"),
    "maxConcurrent 1.5": ({"maxConcurrent": 1.5}, "spec.maxConcurrent"),
    "maxConcurrent of a stage": (stage(maxConcurrent="101%"), SHARE),
    "maxFailures -1": ({"maxFailures": -1}, FAILURES),
    "maxFailures 101%": ({"maxFailures": "101%"}, FAILURES),
    "maxFailures none": ({"maxFailures": "none"}, FAILURES),
    "unknown onFailure": ({"onFailure": "Panic"}, 'supported values: "Continue", "Pause", "Rollback"'),
    "unknown supersede": ({"supersede": "Later"}, 'supported values: "Finish", "Now"'),
    "unknown unreachable": ({"unreachable": "Fail"}, 'supported values: "Skip", "Wait"'),
    "unknown approval": (stage(approval="Maybe"), 'supported values: "Automatic", "Manual"'),
    "timeout of zero": ({"timeout": "0s"}, "at least 1s"),
    "jitter below zero": ({"jitter": "-1s"}, "must be a duration such as"),
    "jitter beyond Go's": ({"jitter": "99999999999999h"}, "must be a duration such as"),
    "bake beyond Go's": (stage(bake="9999999h"), "must be a duration such as"),
    "bake in days": (stage(bake="1d"), "must be a duration such as"),
    "stage rest": (stage(name="rest"), "the name rest is taken"),
    "stage in capitals": (stage(name="EU"), "must be lower-case letters, digits and dashes"),
    "stage without a name": ({"stages": [EVERYWHERE]}, "spec.stages[0].name: Required value"),
    "two stages of one name": (
        {"stages": [EVERYWHERE | {"name": "eu"}, EVERYWHERE | {"name": "eu"}]},
        "no two stages may have the same name",
    ),
    "stage without a selector": ({"stages": [{"name": "a"}]}, "spec.stages[0].selector: Required value"),
    "17 stages": ({"stages": [EVERYWHERE | {"name": f"s{n}"} for n in range(17)]}, "must have at most 16 items"),
    "In without values": (expression(operator="In"), VALUES),
    "NotIn with no values": (expression(operator="NotIn", values=[]), VALUES),
    "Exists with values": (expression(operator="Exists", values=["eu"]), VALUES),
    "unknown operator": (expression(operator="Gt", values=["1"]), '"DoesNotExist", "Exists", "In", "NotIn"'),
    "label key with a space": (stage(selector={"matchLabels": {"a b": "x"}}), KEYS),
    "empty label key": (stage(selector={"matchLabels": {"": "x"}}), KEYS),
    "label key with two slashes": (stage(selector={"matchLabels": {"ring": "x", "a/b/c": "x"}}), KEYS),
    "long label key": (stage(selector={"matchLabels": {"a" * 64: "x"}}), KEYS),
    "long prefix of a label key": (stage(selector={"matchLabels": {"a" * 316 + "/b": "x"}}), KEYS),
    "label value with a space": (stage(selector={"matchLabels": {"ring": "a b"}}), "should match"),
    "gate without http": (stage(gate={"url": "file:///x"}), "must be an http:// or https:// URL without credentials"),
    "gate with a password": (stage(gate={"url": "https://a:b@x/"}), "must be an http:// or https:// URL"),
    "gate without a url": (stage(gate={}), "spec.stages[0].gate.url: Required value"),
    "unknown day": (window(days=["Monday"]), "spec.windows[0].days[0]"),
    "a day twice": (window(days=["Mon", "Mon"]), "Duplicate value"),
    "from at 25:00": (window(**{"from": "25:00"}), "must be a time as HH:MM"),
    "from at 24:00": (window(**{"from": "24:00"}), "must be a time as HH:MM"),
    "until at 9": (window(until="9:00"), "must be a time as HH:MM"),
    "a window of nothing": (window(**{"from": "09:00", "until": "09:00"}), "from and until must differ"),
    "unknown time zone": (window(timezone="Europe/Berlim"), ZONE),
    "local time": (window(timezone="Local"), ZONE),
    "an offset as time zone": (window(timezone="+02:00"), "spec.windows[0].timezone in body should match"),
    "a field that is not there": ({"maxParallel": 3}, 'unknown field "spec.maxParallel"'),
}
BAD = [("Source", *each) for each in BAD_SOURCES.values()] + [
    ("RolloutPolicy", *each) for each in BAD_POLICIES.values()
]


@pytest.mark.parametrize(("kind", "spec", "message"), BAD, ids=[*BAD_SOURCES, *BAD_POLICIES])
def test_a_wrong_object_is_refused(kubectl: Kubectl, kind: str, spec: Spec, message: str) -> None:
    """A wrong object is refused, and the message says why."""
    answer = kubectl("create", "--dry-run=server", "-f", "-", input=manifest(kind, spec))
    assert answer.returncode != 0
    assert message in answer.stderr


SOURCE_DEFAULTS: Spec = {"interval": "1m", "suspend": False}
POLICY_DEFAULTS: Spec = {
    "maxConcurrent": "10%",
    "maxFailures": 0,
    "onFailure": "Pause",
    "supersede": "Now",
    "unreachable": "Skip",
    "timeout": "10m",
    "jitter": "0s",
    "paused": False,
}
STAGE_DEFAULTS: Spec = {"approval": "Automatic", "bake": "0s"}


def filled_source(spec: Spec) -> Spec:
    """A Source's spec as the API server stores it."""
    return SOURCE_DEFAULTS | spec | {"git": {"submodules": False} | spec["git"]}


def filled_policy(spec: Spec) -> Spec:
    """A RolloutPolicy's spec as the API server stores it."""
    whole_day = {"from": "00:00", "until": "24:00", "timezone": "UTC"}
    nested: Spec = {}
    if "stages" in spec:
        nested["stages"] = [STAGE_DEFAULTS | each for each in spec["stages"]]
    if "windows" in spec:
        nested["windows"] = [whole_day | each for each in spec["windows"]]
    return POLICY_DEFAULTS | spec | nested


GOOD_SOURCES: dict[str, Spec] = {
    "branch": git(),
    "branch with dots and quotes": git({"branch": "a./b.c'\"/é@/lock"}),
    "branch with slashes": git({"branch": "release/1.x-rc_2@home"}),
    "tag": git({"tag": "v1.2.3+build.5"}),
    "semver": git({"semver": ">=1.2.0, <2 || ~3.1.x || !=4 ^5"}),
    "semver of prereleases": git({"semver": ">=1.0.0-rc.1+x <v2.0.0-alpha-1, 1.2 - 2.3.4||*"}),
    "sha1 commit": git({"commit": "0123456789abcdef" * 2 + "01234567"}),
    "sha256 commit": git({"commit": "0123456789abcdef" * 4}),
    "http": git(url="http://127.0.0.1:8080/x.git?a=b"),
    "https with an @ in its path": git(url="https://git.example/a@b.git"),
    "ipv6": git(url="https://[::1]:8443/x.git"),
    "ssh": git(url="ssh://git@git.example:2222/~me/x.git"),
    "scp-like": git(url="git@git.example:org/x.git"),
    "file": git(url="file:///srv/git/x.git"),
    "everything": git(secretRef={"name": "git-creds"}, verify={"secretRef": {"name": "trusted.keys"}}, submodules=True)
    | {"interval": "1h30m", "ignore": ["docs/**", "!docs/a"], "suspend": True},
}
LONG_LABELS = {"a" * 253 + "/" + f"{n:063}": "x" * 63 for n in range(64)}
GOOD_POLICIES: dict[str, Spec] = {
    "nothing": {},
    "numbers": {"maxConcurrent": 1, "maxFailures": 7},
    "percentages": {"maxConcurrent": "100%", "maxFailures": "0%"},
    "stages": {
        "stages": [
            {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "maxConcurrent": 1, "bake": "10m"},
            {"name": "eu", "selector": {"matchLabels": {"region": "eu"}}, "maxConcurrent": "25%", "approval": "Manual"},
        ]
    },
    "16 stages": {"stages": [EVERYWHERE | {"name": f"s{n}"} for n in range(16)]},
    "16 stages of 64 long labels": {
        "stages": [{"name": f"s{n:062}", "selector": {"matchLabels": LONG_LABELS}} for n in range(16)]
    },
    "gate": stage(gate={"url": "https://gate.example/ask?x=1", "secretRef": {"name": "key"}, "timeout": "3s"}),
    "In": expression(operator="In", values=["eu", ""]),
    "DoesNotExist": expression(operator="DoesNotExist"),
    "windows": {
        "windows": [
            {"days": ["Mon-Fri"], "from": "09:00", "until": "16:00", "timezone": "Europe/Berlin"},
            {"days": ["Sat", "Sun"], "timezone": "America/Argentina/Buenos_Aires"},
            {"from": "22:00", "until": "06:00", "timezone": "Etc/GMT+5"},
        ]
    },
    "long durations": stage(bake="999999h999999h99999h") | {"timeout": "999999h", "jitter": "8760h"},
    "choices": {
        "onFailure": "Rollback",
        "supersede": "Finish",
        "unreachable": "Wait",
        "timeout": "1h0.5m",
        "jitter": "250ms",
        "paused": True,
    },
}
GOOD = [("Source", each, filled_source(each)) for each in GOOD_SOURCES.values()] + [
    ("RolloutPolicy", each, filled_policy(each)) for each in GOOD_POLICIES.values()
]


@pytest.mark.parametrize(("kind", "spec", "filled"), GOOD, ids=[*GOOD_SOURCES, *GOOD_POLICIES])
def test_a_right_object_is_stored_with_its_defaults_and_read_back(
    kubectl: Kubectl, kind: str, spec: Spec, filled: Spec
) -> None:
    """The API server fills in the defaults, our structs read the same, and what they write is the same object."""
    stored = kubectl(*APPLY, input=manifest(kind, spec))
    assert stored.returncode == 0, stored.stderr
    assert json.loads(stored.stdout)["spec"] == filled

    struct = {"Source": Source, "RolloutPolicy": RolloutPolicy}[kind]
    read = msgspec.json.decode(stored.stdout, type=struct)
    assert read.metadata.name == "tried"
    as_written = msgspec.convert({"metadata": {}, "spec": spec}, struct)
    assert (read.spec, read.status) == (as_written.spec, as_written.status), "a struct's default isn't the CRD's"

    again = kubectl(*APPLY, input=manifest(kind, msgspec.to_builtins(read.spec)))
    assert json.loads(again.stdout)["spec"] == filled
    assert json.loads(again.stdout)["metadata"]["generation"] == read.metadata.generation


def test_stages_of_two_writers_do_not_mix(kubectl: Kubectl) -> None:
    """Who applies other stages than another did is told of the conflict, and with force replaces them all."""

    def apply(name: str, *options: str) -> CompletedProcess[str]:
        return kubectl(*APPLY, f"--field-manager={name}", *options, input=manifest("RolloutPolicy", stage(name=name)))

    kubectl("delete", "rolloutpolicy/tried", "--ignore-not-found")
    assert apply("eu").returncode == 0
    refused = apply("us")
    assert refused.returncode != 0
    assert 'conflict with "eu": .spec.stages' in refused.stderr
    forced = json.loads(apply("us", "--force-conflicts").stdout)
    assert [each["name"] for each in forced["spec"]["stages"]] == ["us"]


@pytest.mark.parametrize("before", [None, "eu-1"], ids=["here", "a cluster"])
@pytest.mark.parametrize("after", [None, "eu-1", "us-1"], ids=["here", "the same", "another"])
def test_a_sync_stays_on_its_cluster(kubectl: Kubectl, before: str | None, after: str | None) -> None:
    """Where a Sync goes can't be changed, neither to a cluster nor from one; all else can."""

    def applied(cluster: str | None, path: str) -> CompletedProcess[str]:
        where = {"cluster": {"name": cluster}} if cluster is not None else {}
        return kubectl(*APPLY, input=manifest("Sync", {"source": {"name": "s"}, "path": path, **where}))

    kubectl("delete", "sync/tried", "--ignore-not-found")
    assert applied(before, "one").returncode == 0
    again = applied(after, "two")
    if before == after:
        assert again.returncode == 0, again.stderr
    else:
        assert "spec.cluster: Invalid value" in again.stderr
        assert "can't be changed: delete the Sync, and make one for the other cluster" in again.stderr
