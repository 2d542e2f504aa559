"""Objects of several kinds, and random edits of them, for tests that compare what we say with what a server does."""

import base64
import copy
import random
from collections.abc import Callable
from typing import Any

from starling.kube import Client, Ref, Resource
from tests.integration.config_maps import CONFIG_MAPS, config_map

Json = dict[str, Any]
Edit = Callable[[Json, random.Random], object]

DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
SERVICES = Resource("", "v1", "Service", "services", namespaced=True)
SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
WIDGETS = Resource("diff.example.org", "v1", "Widget", "widgets", namespaced=True)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

WIDGET_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "fixed": {"type": "string", "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "Value is immutable"}]},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip


WIDGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.diff.example.org"},
    "spec": {
        "group": "diff.example.org",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}}],
    },
}


def deployment() -> Json:
    """Two containers, with all sorts of lists."""
    web = {
        "name": "web",
        "image": "web:1",
        "env": [{"name": name, "value": "1"} for name in "ABC"],
        "args": ["a", "b"],
        "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {"containers": [web, {"name": "proxy", "image": "proxy:1"}], "tolerations": [{"operator": "Exists"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def service() -> Json:
    """Two ports."""
    ports = [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"}]
    spec = {"selector": {"app": "web"}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def secret(**data: str) -> Json:
    """A Secret of these values."""
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": encoded}


def widget(**spec: Any) -> Json:
    """One of the tests' own kind."""
    return {"apiVersion": "diff.example.org/v1", "kind": "Widget", "metadata": {"name": "web"}, "spec": spec}


def web_container(content: Json) -> Json:
    """The first container, or whatever has come to stand there."""
    found: Json = content["spec"]["template"]["spec"]["containers"][0]
    return found


def edit(path: str, *values: Any) -> Edit:
    """Put one of some values at a path, or take away what is there."""

    def change(content: Json, rng: random.Random) -> None:
        *way, last = path.split(".")
        within = content
        for name in way:
            within = within.setdefault(name, {})
        if rng.random() < 0.3:
            within.pop(last, None)
        else:
            within[last] = copy.deepcopy(rng.choice(values))
        # The server writes a custom resource anew, unchanged, whenever someone applies empty labels or annotations.
        for name in ("labels", "annotations"):
            if not content.get("metadata", {"": ""}).get(name, True):
                del content["metadata"][name]

    return change


ANY_KIND: list[Edit] = [
    lambda _content, _rng: None,
    edit("metadata.labels.tier", "a", "b"),
    edit("metadata.annotations.note", "x", "y\nz\n"),
]
KINDS: dict[str, tuple[Resource, Callable[[], Json], list[Edit]]] = {
    "Deployment": (
        DEPLOYMENTS,
        deployment,
        [
            edit("spec.replicas", 1, 2, 3),
            edit("spec.strategy", {"type": "Recreate"}, {"rollingUpdate": {"maxSurge": "25%"}}),
            edit("spec.template.spec.tolerations", [], [{"key": "a"}, {"key": "b", "operator": "Exists"}]),
            lambda content, rng: rng.shuffle(content["spec"]["template"]["spec"]["containers"]),
            lambda content, rng: edit("resources.requests.cpu", "1", "1000m", "0.5")(web_container(content), rng),
            lambda content, rng: edit("args", ["a"], ["b", "a"], ["a", "b"])(web_container(content), rng),
            lambda content, rng: edit(
                "env", *([{"name": name, "value": rng.choice("12")} for name in some] for some in ("AB", "CA", "ABCD"))
            )(web_container(content), rng),
            lambda content, rng: edit("ports", [{"containerPort": 80, "name": "http"}])(web_container(content), rng),
        ],
    ),
    "Service": (
        SERVICES,
        service,
        [
            edit("spec.sessionAffinity", "ClientIP", "None"),
            edit("spec.selector", {"app": "web", "tier": "a"}, {"app": "other"}),
            edit("spec.publishNotReadyAddresses", True, False),
            lambda content, rng: rng.shuffle(content["spec"]["ports"]),
            lambda content, rng: content["spec"]["ports"][0].update(targetPort=rng.choice([80, 8080, "web"])),
        ],
    ),
    "ConfigMap": (
        CONFIG_MAPS,
        lambda: config_map("web", a="1", file="line\n" * 20),
        [
            edit("data.a", "1", "2"),
            edit("data.file", "line\n" * 20, "line\n" * 9 + "other\n" + "line\n" * 9),
            edit("binaryData.b", "AAAA", "AQID"),
            edit("data", {}, {"b": ""}),
        ],
    ),
    "Secret": (
        SECRETS,
        lambda: secret(password="hunter2", token="swordfish"),
        [
            edit("data.password", "aHVudGVyMg==", "aHVudGVyMw=="),
            edit("data.more", "aHVudGVyMg=="),
            edit("stringData.token", "swordfish", "marlinfish"),
        ],
    ),
    "Widget": (
        WIDGETS,
        lambda: widget(size=1, parts=[{"name": "a"}, {"name": "b", "count": 2}], free={"x": [1, {"y": None}]}),
        [
            edit("spec.size", 1, 3, 5),
            edit("spec.parts", [{"name": "b"}, {"name": "a", "count": 7}], [{"name": "c"}], []),
            edit("spec.free", {"x": [2]}, {"x": [1, {"y": 0}], "z": True}),
            edit("status", {"phase": "a"}, {"phase": "b"}),
        ],
    ),
}


async def live(client: Client, ref: Ref) -> Json:
    """The object as it is."""
    found: Json = (await client.get(ref)).json()
    return found


def without_book_keeping(content: Json) -> Json:
    """The object without what the server writes about it."""
    hidden = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
    metadata = {name: value for name, value in content["metadata"].items() if name not in hidden}
    return {**content, "metadata": metadata}
