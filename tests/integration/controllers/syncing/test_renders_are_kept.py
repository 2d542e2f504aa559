"""Renders come back from their Secrets as they were, or not at all."""

import random

import pytest

from starling.api import Sync
from starling.controllers.renders import Render, Renders, packed_manifests, part_name
from starling.kube import Resource, Selection
from starling.objects import Manifest, Origin
from tests.integration.config_maps import ConfigMap
from tests.integration.controllers.syncing.stage import Stage

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
PART = 4_000


def made(key: str, size: int) -> Render:
    """A render of about as many bytes, which don't get fewer by packing."""
    noise = random.Random(key).randbytes(size // 2).hex()
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"noise": noise}}
    return Render(key, f"main@sha1:{key}", packed_manifests([Manifest(content, Origin("a.yaml", 1, 2))]))


@pytest.fixture
async def sync(stage: Stage) -> Sync:
    """A Sync that renders may belong to."""
    return await stage.put_sync("web", "a" * 40)


async def parts(stage: Stage) -> list[str]:
    """The Secrets that are there."""
    found = await stage.client.list(SECRETS, ConfigMap, Selection(stage.namespace))
    return sorted(each.metadata.name for each in found.items)


async def test_large_renders_are_cut_and_tidied(stage: Stage, sync: Sync) -> None:
    """A render takes as many Secrets as it needs, comes back whole, and a smaller one leaves none of them behind."""
    renders = Renders(stage.client, part=PART)
    large, small = made("b" * 40, 20_000), made("c" * 40, 100)
    assert await renders.get(sync) is None
    await renders.put(sync, large)
    names = await parts(stage)
    assert len(names) > 3
    found = await Renders(stage.client).get(sync)
    assert found == large
    assert [each.origin for each in found.manifests()] == [Origin("a.yaml", 1, 2)]
    await renders.put(sync, small)
    assert await parts(stage) == [part_name("web", 0)]
    assert await Renders(stage.client).get(sync) == small


async def test_half_a_render_is_none(stage: Stage, sync: Sync) -> None:
    """Where a part is missing, or is another render's, there is no render."""
    large, other = made("b" * 40, 20_000), made("d" * 40, 20_000)
    await Renders(stage.client, part=PART).put(sync, large)
    ref = SECRETS.ref(part_name("web", 1), stage.namespace)
    kept = (await stage.client.get(ref)).json()
    await Renders(stage.client, part=PART).put(sync, other)
    assert await Renders(stage.client).get(sync) == other
    await stage.client.merge_patch(ref, {"data": kept["data"]})
    assert await Renders(stage.client).get(sync) is None
    await stage.client.delete(ref)
    assert await Renders(stage.client).get(sync) is None
