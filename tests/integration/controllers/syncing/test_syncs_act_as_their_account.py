"""Outside the platform namespace a Sync acts as an account of its own namespace, and refers to nothing beyond it."""

from dataclasses import replace

import pytest

from starling.api import PLATFORM_NAMESPACE
from starling.kube import NotFound, Resource
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.controllers.syncing.stage import ACCOUNTS, Stage, config_map

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@pytest.fixture
async def platform(stage: Stage) -> Stage:
    """The stage in the platform namespace; leave it without Syncs."""
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLATFORM_NAMESPACE}}
    await stage.client.apply(NAMESPACES.ref(PLATFORM_NAMESPACE), document)
    return replace(stage, namespace=PLATFORM_NAMESPACE)


async def test_without_the_account_nothing_is_done(stage: Stage) -> None:
    """A Sync whose account isn't there is refused with the way out, and goes on once it is."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    async with stage.agent():
        await stage.put_sync("web", first, serviceAccountName="deployer")
        sync = await stage.says("web", f"there is no ServiceAccount {stage.namespace}/deployer", "Stalled")
        assert "create serviceaccount deployer" in sync.status.problems[0].hint
        assert await stage.live("web") is None
        await stage.make_account("deployer")
        await stage.ready("web")


async def test_the_account_s_rights_are_the_limit(stage: Stage) -> None:
    """An account that is there without rights can't do what the agent could."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    await stage.client.apply(ACCOUNTS.ref("nobody", stage.namespace), document)
    async with stage.agent():
        await stage.put_sync("web", first, serviceAccountName="nobody")
        sync = await stage.says("web", f"system:serviceaccount:{stage.namespace}:nobody", "Stalled")
        assert sync.status.problems[0].reason == "Forbidden"
        assert await stage.live("web") is None


async def test_another_namespace_is_out_of_reach(stage: Stage) -> None:
    """Manifests that name another namespace are refused there, by the rights of the account."""
    manifest = config_map("stray", v="1").replace('"name": "stray"', '"name": "stray", "namespace": "default"')
    first = stage.repository.commit({"web/cm.yaml": manifest})
    async with stage.agent():
        await stage.put_sync("web", first)
        await stage.says("web", "default", "Stalled")
    with pytest.raises(NotFound):
        await stage.client.get(CONFIG_MAPS.ref("stray", "default"))


async def test_the_platform_acts_with_our_own_rights(platform: Stage, namespace: str) -> None:
    """In the platform namespace a Sync needs no account and reaches other namespaces."""
    first = platform.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    name = f"web-{namespace}"
    async with platform.agent():
        await platform.put_sync(name, first, path="web", targetNamespace=namespace)
        await platform.ready(name)
        live = (await platform.client.get(CONFIG_MAPS.ref("web", namespace))).json()
        assert live["data"] == {"v": "1"}
        await platform.delete_sync(name)
        await platform.gone(name)
