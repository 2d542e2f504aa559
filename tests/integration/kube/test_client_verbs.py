"""Each verb of the client does on a real API server what its name says."""

from typing import Any

import pytest

from starling.errors import InputError
from starling.kube import (
    AlreadyExists,
    BadRequest,
    Client,
    Conflict,
    DeleteOptions,
    Forbidden,
    Identity,
    Invalid,
    NotFound,
    NotServed,
    Resource,
    Unreadable,
)
from starling.objects import Manifest
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap, config_map

DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)


async def test_get_decodes_just_what_is_asked_for(client: Client, namespace: str) -> None:
    """An answer is bytes until a type says which fields to take."""
    await client.create(CONFIG_MAPS, config_map("a", colour="red"), namespace=namespace)
    body = await client.get(CONFIG_MAPS.ref("a", namespace))
    assert b'"creationTimestamp"' in body.raw
    assert body.decode(ConfigMap).data == {"colour": "red"}
    assert body.json()["kind"] == "ConfigMap"


async def test_create_takes_a_name_once(client: Client, namespace: str) -> None:
    """A second create under the same name is AlreadyExists, which is a Conflict."""
    await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    with pytest.raises(AlreadyExists, match=f"create ConfigMap {namespace}/a: .*already exists") as caught:
        await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    assert isinstance(caught.value, Conflict)


async def test_create_lets_the_server_choose_a_name(client: Client, namespace: str) -> None:
    """With generateName the answer holds the name that was made."""
    body = config_map("")
    body["metadata"] = {"generateName": "made-"}
    created = (await client.create(CONFIG_MAPS, body, namespace=namespace)).decode(ConfigMap)
    assert created.metadata.name.startswith("made-")
    assert (await client.get(CONFIG_MAPS.ref(created.metadata.name, namespace))).raw


async def test_dry_runs_change_nothing(client: Client, namespace: str) -> None:
    """Create, apply, patch and delete as dry runs answer as if they had acted, and don't."""
    await client.create(CONFIG_MAPS, config_map("there", x="1"), namespace=namespace)
    there, absent = CONFIG_MAPS.ref("there", namespace), CONFIG_MAPS.ref("absent", namespace)
    before = (await client.get(there)).raw

    await client.create(CONFIG_MAPS, config_map("absent"), namespace=namespace, dry_run=True)
    applied = await client.apply(absent, config_map("absent", y="2"), dry_run=True)
    assert applied.decode(ConfigMap).data == {"y": "2"}
    merged = await client.merge_patch(there, {"data": {"x": "9"}}, dry_run=True)
    assert merged.decode(ConfigMap).data == {"x": "9"}
    await client.delete(there, DeleteOptions(dry_run=True))

    with pytest.raises(NotFound):
        await client.get(absent)
    assert (await client.get(there)).raw == before


async def test_apply_creates_then_owns_its_fields(client: Client, namespace: str) -> None:
    """Apply creates, sets, removes what it no longer names, and writes nothing where nothing differs."""
    ref = CONFIG_MAPS.ref("a", namespace)
    first = (await client.apply(ref, config_map("a", kept="1", dropped="2"))).decode(ConfigMap)
    same = (await client.apply(ref, config_map("a", kept="1", dropped="2"))).decode(ConfigMap)
    assert same.metadata.resource_version == first.metadata.resource_version
    assert (await client.apply(ref, config_map("a", kept="1"))).decode(ConfigMap).data == {"kept": "1"}


async def test_apply_keeps_every_character(client: Client, namespace: str) -> None:
    """An apply's body is read as YAML by the API server, and still every character arrives as it was sent."""
    surrogates = range(0xD800, 0xE000)
    every = "".join(chr(number) for number in range(1, 0x10FFFF, 1) if number < 0x10000 or number % 997 == 0)
    every = "".join(character for character in every if ord(character) not in surrogates)
    data = {f"from-{start}": every[start : start + 4096] for start in range(0, len(every), 4096)}
    await client.apply(CONFIG_MAPS.ref("a", namespace), config_map("a", **data))
    assert (await client.get(CONFIG_MAPS.ref("a", namespace))).decode(ConfigMap).data == data


async def test_apply_without_force_reports_who_owns_a_field(client: Client, namespace: str) -> None:
    """A field of another manager is a Conflict whose cause names field and manager, and force takes it."""
    ref = CONFIG_MAPS.ref("a", namespace)
    await client.apply(ref, config_map("a", x="1"), manager="someone")
    with pytest.raises(Conflict) as caught:
        await client.apply(ref, config_map("a", x="2"), force=False)
    assert caught.value.causes[0].field == ".data.x"
    assert "someone" in caught.value.causes[0].message
    assert (await client.apply(ref, config_map("a", x="2"))).decode(ConfigMap).data == {"x": "2"}


async def test_patches(client: Client, namespace: str) -> None:
    """A JSON patch runs its operations, a merge patch merges, and both fail on the wrong state."""
    ref = CONFIG_MAPS.ref("a", namespace)
    created = (await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace=namespace)).decode(ConfigMap)
    patched = await client.json_patch(ref, [{"op": "test", "path": "/data/x", "value": "1"},
                                            {"op": "add", "path": "/data/y", "value": "2"}])  # fmt: skip
    assert patched.decode(ConfigMap).data == {"x": "1", "y": "2"}
    with pytest.raises(Invalid):
        await client.json_patch(ref, [{"op": "test", "path": "/data/x", "value": "other"}])
    assert (await client.merge_patch(ref, {"data": {"x": None}})).decode(ConfigMap).data == {"y": "2"}
    with pytest.raises(Conflict, match="modified"):
        await client.merge_patch(
            ref, {"metadata": {"resourceVersion": created.metadata.resource_version}, "data": {"z": "3"}}
        )


async def test_status_is_written_apart(client: Client, namespace: str) -> None:
    """A write to the status subresource leaves the spec alone, and the other way round."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    ref = DEPLOYMENTS.ref("a", namespace)
    await client.apply(ref, deployment)
    status = {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": status}
    await client.apply(ref.status, {**body, "spec": {"replicas": 9}}, manager="status-writer")
    found = (await client.get(ref)).json()
    assert found["spec"]["replicas"] == 2
    assert found["status"]["replicas"] == 1
    await client.merge_patch(ref.status, {"status": {"replicas": 3}})
    assert (await client.get(ref.status)).json()["status"]["replicas"] == 3


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_delete_takes_the_propagation_asked_for(client: Client, namespace: str, propagation: Any) -> None:
    """Foreground and Orphan leave a finalizer for the garbage collector, Background deletes at once."""
    ref = CONFIG_MAPS.ref("a", namespace)
    await client.apply(ref, config_map("a"))
    await client.delete(ref, DeleteOptions(propagation=propagation))
    if propagation == "Background":
        with pytest.raises(NotFound):
            await client.get(ref)
    else:
        finalizers = (await client.get(ref)).json()["metadata"]["finalizers"]
        assert finalizers == [{"Foreground": "foregroundDeletion", "Orphan": "orphan"}[propagation]]


async def test_delete_means_one_object_in_one_state(client: Client, namespace: str) -> None:
    """A precondition on uid or resourceVersion that doesn't hold is a Conflict, and nothing is deleted."""
    ref = CONFIG_MAPS.ref("a", namespace)
    first = (await client.apply(ref, config_map("a", x="1"))).decode(ConfigMap).metadata
    await client.apply(ref, config_map("a", x="2"))
    with pytest.raises(Conflict, match="delete ConfigMap"):
        await client.delete(ref, DeleteOptions(uid="00000000-0000-0000-0000-000000000000"))
    with pytest.raises(Conflict):
        await client.delete(ref, DeleteOptions(resource_version=first.resource_version))
    await client.delete(ref, DeleteOptions(uid=first.uid))
    with pytest.raises(NotFound, match=f"delete ConfigMap {namespace}/a"):
        await client.delete(ref)


async def test_impersonation_carries_user_and_groups(client: Client, namespace: str) -> None:
    """Acting as a service account, the server sees its name and groups and refuses what it may not do."""
    nobody = client.impersonating(Identity.service_account(namespace, "nobody"))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await nobody.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    told = answer.json()["status"]["userInfo"]
    assert told["username"] == f"system:serviceaccount:{namespace}:nobody"
    assert set(told["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    }
    with pytest.raises(Forbidden, match=f"get ConfigMap {namespace}/a: .*nobody.* cannot get"):
        await nobody.get(CONFIG_MAPS.ref("a", namespace))


async def test_raw_reaches_any_path(client: Client) -> None:
    """Paths outside the resource model, such as health checks and the version."""
    assert (await client.raw("GET", "/readyz")).raw == b"ok"
    assert (await client.raw("GET", "/version")).json()["major"] == "1"


async def test_invalid_names_the_fields(client: Client, namespace: str) -> None:
    """What validation objects to comes back as causes with field and message."""
    with pytest.raises(Invalid) as caught:
        await client.apply(DEPLOYMENTS.ref("a", namespace), {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"selector": {"matchLabels": {"a": "b"}},
                     "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": []}}},
        })  # fmt: skip
    assert {"spec.template.metadata.labels", "spec.template.spec.containers"} <= {
        cause.field for cause in caught.value.causes
    }
    assert str(caught.value).startswith(f"apply Deployment.apps {namespace}/a: ")


async def test_what_is_missing_is_told_apart(client: Client, namespace: str) -> None:
    """A missing object, a missing namespace and a missing kind read differently."""
    with pytest.raises(NotFound, match='configmaps "a" not found') as missing:
        await client.get(CONFIG_MAPS.ref("a", namespace))
    assert not isinstance(missing.value, NotServed)
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await client.create(CONFIG_MAPS, config_map("a"), namespace="nowhere")
    with pytest.raises(NotServed):
        await client.get(Resource("nobody.example", "v1", "Thing", "things", namespaced=True).ref("a", namespace))


async def test_nonsense_is_a_bad_request(client: Client, namespace: str) -> None:
    """A body that isn't an object is refused as such."""
    with pytest.raises(BadRequest, match=f"create ConfigMap in {namespace}"):
        await client.create(CONFIG_MAPS, b"{", namespace=namespace)


async def test_the_servers_warnings_reach_the_caller(client: Client, namespace: str) -> None:
    """What the API server warns of comes with the answer."""
    endpoints = Resource("", "v1", "Endpoints", "endpoints", namespaced=True)
    answer = await client.create(
        endpoints, {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "old"}}, namespace=namespace
    )
    assert any("deprecated" in warning for warning in answer.warnings)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2Fb"])
def test_a_name_that_is_a_path_of_its_own_is_refused(name: str) -> None:
    """An empty name would be the whole collection, which a delete would empty."""
    with pytest.raises(InputError, match="can't be the name of a ConfigMap"):
        CONFIG_MAPS.ref(name, "default")
    if name:
        with pytest.raises(InputError, match="can't be the namespace of a ConfigMap"):
            CONFIG_MAPS.ref("a", name)


def test_a_ref_is_in_a_namespace_or_not_as_its_kind_is() -> None:
    """Forgetting the namespace, or giving one to what has none, is told as that."""
    with pytest.raises(InputError, match="a ConfigMap is in a namespace, and none was given"):
        CONFIG_MAPS.ref("a")
    with pytest.raises(InputError, match="a Node is in no namespace, and default was given"):
        Resource("", "v1", "Node", "nodes", namespaced=False).ref("a", "default")


NOBODIES: list[tuple[str, Any]] = [("", ()), (" ", ()), ("", ("g",)), ("a", ("",)), ("a", "group"), ("a\nb", ())]


@pytest.mark.parametrize(("user", "groups"), NOBODIES)
def test_nobody_is_no_one_to_act_as(user: str, groups: Any) -> None:
    """A blank name would leave us with our own rights."""
    with pytest.raises(InputError, match="can't act as user"):
        Identity(user, groups)
    with pytest.raises(InputError, match="a service account has a namespace and a name"):
        Identity.service_account("", "a")


async def test_a_manifest_is_a_body(client: Client, namespace: str) -> None:
    """What starling.objects reads can be created and applied as it is."""
    manifest = Manifest(config_map("a", x="1"))
    await client.create(CONFIG_MAPS, manifest, namespace=namespace)
    applied = await client.apply(CONFIG_MAPS.ref("a", namespace), manifest.changed(lambda it: it["data"].update(x="2")))
    assert applied.decode(ConfigMap).data == {"x": "2"}


async def test_an_answer_of_another_shape_is_unreadable(client: Client) -> None:
    """What isn't what was asked for is an error that names the request."""
    with pytest.raises(Unreadable, match="GET /readyz: the answer isn't what was asked for"):
        (await client.raw("GET", "/readyz")).decode(ConfigMap)
