"""Ignored fields stay as they are in the cluster, through every apply, and are never deleted."""

import copy
from typing import Any

import pytest

from starling.engine.fields import attribute
from starling.engine.ignoring import settle
from starling.kube import Body, Client, Ref
from starling.objects import ObjectKey
from tests.integration.conftest import Kubectl
from tests.integration.managed_objects import entries, ref_of, take_over

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {"note": "git", "more": "git"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "side", "image": "side:1"}, {"name": "web", "image": "web:1"}]},
        },
    },
}
IMAGE = "/spec/template/spec/containers/1/image"


async def applied(client: Client, ref: Ref, *pointers: str) -> Body:
    """Apply once more what git says, without the differences that are ignored."""
    live = await client.get(ref)
    return await client.apply(ref, settle(DEPLOYMENT, live.json(), entries(live), pointers))


def owners(body: Body) -> list[str]:
    """Who owns the replicas."""
    return [entry.manager for entry in entries(body) if b"f:replicas" in bytes(entry.fields_v1)]


async def test_replicas_that_another_scales(client: Client, namespace: str, kubectl: Kubectl) -> None:
    """Git's at creation, ours while nobody else wants them, then the scaler's; at no time the default."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    body = await client.apply(ref, settle(DEPLOYMENT, None, (), ["/spec/replicas"]))
    for _ in range(2):
        assert body.json()["spec"]["replicas"] == 3
        assert owners(body) == ["starling"]
        body = await applied(client, ref, "/spec/replicas")
    for replicas in (7, 8):
        scaled = kubectl("scale", "deployment", "web", f"--replicas={replicas}", "-n", namespace)
        assert scaled.returncode == 0, scaled.stderr
        for _ in range(2):
            body = await applied(client, ref, "/spec/replicas")
            assert body.json()["spec"]["replicas"] == replicas
            assert owners(body) == ["kubectl"]
    content = settle(DEPLOYMENT, body.json(), entries(body), ["/spec/replicas"])
    assert attribute(ObjectKey("apps", "Deployment", namespace, "web"), content, entries(body)) == ()


async def test_a_live_value_without_an_owner(client: Client, namespace: str) -> None:
    """Managed fields cleared by hand: the live value is taken up as ours, apply after apply."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    await client.merge_patch(ref, {"spec": {"replicas": 7}}, manager="someone")
    await client.json_patch(ref, [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}])
    for _ in range(3):
        assert (await applied(client, ref, "/spec/replicas")).json()["spec"]["replicas"] == 7


async def test_items_of_lists_by_key(client: Client, namespace: str) -> None:
    """An image that a deployer sets stays, wherever the container stands in the live list."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    containers = [{"name": "web", "image": "web:2"}, {"name": "side", "image": "side:1"}]
    await client.json_patch(
        ref, [{"op": "replace", "path": "/spec/template/spec/containers", "value": containers}], manager="deployer"
    )
    for _ in range(2):
        body = await applied(client, ref, IMAGE)
        images = {one["name"]: one["image"] for one in body.json()["spec"]["template"]["spec"]["containers"]}
        assert images == {"web": "web:2", "side": "side:1"}


@pytest.mark.parametrize("pointer", ["/metadata/annotations", "/metadata/annotations/note"])
async def test_a_removed_annotation_stays_away(client: Client, namespace: str, pointer: str) -> None:
    """And one that is changed stays changed, with its changer as the owner."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    await client.merge_patch(ref, {"metadata": {"annotations": {"note": "theirs"}}}, manager="someone")
    for _ in range(2):
        assert (await applied(client, ref, pointer)).json()["metadata"]["annotations"] == {
            "note": "theirs",
            "more": "git",
        }
    await client.merge_patch(ref, {"metadata": {"annotations": {"note": None}}}, manager="someone")
    for _ in range(2):
        assert (await applied(client, ref, pointer)).json()["metadata"]["annotations"] == {"more": "git"}


async def test_adoption_deletes_nothing_that_is_ignored(client: Client, namespace: str) -> None:
    """The replicas of a maker whose place we take are settled to the live ones, not left out and then removed."""
    content = copy.deepcopy(DEPLOYMENT)
    content["spec"]["replicas"] = 5
    ref = await ref_of(client, content, namespace)
    made = await client.create(ref.resource, content, namespace=namespace, manager="kubectl-client-side-apply")
    ours = settle(DEPLOYMENT, made.json(), entries(made), ["/spec/replicas"])
    body = await take_over(client, ref, ours)
    assert body.json()["spec"]["replicas"] == 5
    assert owners(body) == ["starling"]
    assert (await applied(client, ref, "/spec/replicas")).json()["spec"]["replicas"] == 5
