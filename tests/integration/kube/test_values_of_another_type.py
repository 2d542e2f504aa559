"""A value that isn't of its field's type is refused for good, and nobody is told the value."""

from collections.abc import Iterable
from typing import Any

import pytest

from starling.aio import SystemClock
from starling.kube import ApiError, Client, Invalid, NotFound, Resource, kubeconfig
from starling.local import LocalCluster
from tests.integration.config_maps import CONFIG_MAPS
from tests.waiting import until

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
SAFES = Resource("types.example.dev", "v1", "Safe", "safes", namespaced=True)
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
FIELDS = {
    "text": TEXT,
    "map": {"type": "object", "additionalProperties": TEXT},
    "list": TEXTS,
    "set": {**TEXTS, "x-kubernetes-list-type": "set"},
}

NUMBER = 987654321
MAP = {"a}b": "hun}ter2", "c": {"d": NUMBER}}
LIST = ["hunter2", {"a": "hun}ter3\n  .b: "}]
LINES = "hun}ter2\n}\n  .b {\n Value:{hunter3"
VALUES = {"number": NUMBER, "map": MAP, "list": LIST, "text": LINES}


def deployment(**environment: Any) -> dict[str, Any]:
    """One whose container has that environment."""
    container = {"name": "c", "image": "c", **environment}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    return {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


def manifests(value: Any) -> Iterable[tuple[Resource, dict[str, Any]]]:
    """Places for a value where it doesn't belong."""
    no_map = {"k": value} if isinstance(value, dict) else value
    no_list = [value] if isinstance(value, list) else value
    yield CONFIG_MAPS, {"data": no_map}
    yield CONFIG_MAPS, {"immutable": value}
    yield SECRETS, {"stringData": no_map}
    yield SAFES, {"spec": {"map": no_map}}
    yield SAFES, {"spec": {"list": no_list}}
    yield SAFES, {"spec": {"set": [value, value]}}
    yield DEPLOYMENTS, deployment(env=no_list)
    yield DEPLOYMENTS, {**deployment(), "metadata": {"creationTimestamp": value}}
    yield SECRETS, {"data": {"k": value}}
    if isinstance(value, str):
        return
    yield CONFIG_MAPS, {"data": {"k": value}}
    yield SECRETS, {"stringData": {"k": value}}
    yield SECRETS, {"data": {"k": value, "l": NUMBER}}
    yield DEPLOYMENTS, deployment(env=[{"name": "E", "value": value}])
    yield SAFES, {"spec": {"text": value}}


class Impatient(SystemClock):
    """A clock that nobody may wait by."""

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


async def serve_safes(client: Client) -> None:
    """Have the API server serve a kind of ours."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Safe", "plural": "safes", "singular": "safe"}
    await client.apply(CRDS.ref("safes.types.example.dev"), {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "safes.types.example.dev"},
        "spec": {"group": SAFES.group, "scope": "Namespaced", "names": names, "versions": [version]},
    })  # fmt: skip

    async def served() -> bool:
        body = {"apiVersion": "types.example.dev/v1", "kind": "Safe", "metadata": {"name": "a"}, "spec": {"text": "a"}}
        try:
            await client.apply(SAFES.ref("a", "default"), body, dry_run=True)
        except NotFound:
            return False
        return True

    await until(served)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_nothing_is_told_of_it(cluster: LocalCluster, client: Client, namespace: str, value: Any) -> None:
    """For built-in kinds and others, wherever it stands: Invalid, asked once, with the field but not the value."""
    await serve_safes(client)
    async with Client(kubeconfig(cluster.kubeconfig), clock=Impatient()) as impatient:
        for resource, content in manifests(value):
            metadata = {**content.get("metadata", {}), "name": "a"}
            body = {"apiVersion": resource.gvk.api_version, "kind": resource.kind, **content, "metadata": metadata}
            with pytest.raises(ApiError) as raised:
                await impatient.apply(resource.ref("a", namespace), body)
            error = raised.value
            assert (type(error), error.code) == (Invalid, 500), content
            for told in (str(error), repr(error.causes)):
                assert not [part for part in ("hun", "ter2", "ter3", str(NUMBER), "a}b") if part in told], told
            assert error.causes
