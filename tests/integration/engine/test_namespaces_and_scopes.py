"""Where objects go: the target namespace, the default one, their own; and what is in no namespace, by discovery."""

from starling.kube import Resource
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import Json, Scene, config_map
from tests.integration.engine.world import running_engine

ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


def placed(name: str, namespace: str) -> Json:
    """A ConfigMap that names its namespace."""
    return {**config_map(name), "metadata": {"name": name, "namespace": namespace}}


def role(name: str, namespace: str) -> Json:
    """A ClusterRole with the namespace that templating tools put everywhere."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []}


async def test_the_target_namespace_is_for_all_that_can_be_in_one(scene: Scene) -> None:
    """Written elsewhere or nowhere; what is cluster-scoped isn't touched by it."""
    unit = scene.render("web", placed("a", "elsewhere"), config_map("b"), role(f"{scene.namespace}-role", "elsewhere"))
    async with running_engine(scene):
        await scene.synced(unit)
        assert await scene.names() == {"a", "b"}
        assert set(scene.status(unit).inventory) == {
            ObjectKey("", "ConfigMap", scene.namespace, "a"),
            ObjectKey("", "ConfigMap", scene.namespace, "b"),
            ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", f"{scene.namespace}-role"),
        }
        scene.render("web", config_map("b"))
        await scene.synced(unit)
    assert not await scene.live(f"{scene.namespace}-role", ROLES)


async def test_the_default_namespace_is_for_what_names_none(scene: Scene) -> None:
    """And a namespace that is written is kept; one that the set brings is made before what is in it."""
    other = f"{scene.namespace}-more"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    unit = scene.render(
        "web", config_map("a"), placed("b", other), made, target_namespace="", default_namespace=scene.namespace
    )
    async with running_engine(scene):
        await scene.synced(unit)
    assert not [event for event in scene.events if event.problem is not None]
    assert await scene.data("a") == {}
    assert (await scene.client.get(CONFIG_MAPS.ref("b", other))).raw
    await scene.client.delete(NAMESPACES.ref(other))


async def test_another_target_namespace_moves_everything(scene: Scene) -> None:
    """Which is a new set of objects in place of all the old ones, so someone must say that it is meant."""
    other = f"{scene.namespace}-moved"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    await scene.client.create(NAMESPACES, made)
    unit = scene.render("web", config_map("a"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("a"), target_namespace=other)
        await scene.until(unit, lambda status: status.problems)
        assert await scene.names() == {"a"}
        scene.render("web", config_map("a"), target_namespace=other, allow_empty=True)
        await scene.synced(unit)
        await scene.until(unit, lambda status: [key.namespace for key in status.inventory] == [other])
    assert await scene.names() == set()
    assert (await scene.client.get(CONFIG_MAPS.ref("a", other))).raw
    await scene.client.delete(NAMESPACES.ref(other))


async def test_a_namespace_that_is_missing_is_named(scene: Scene) -> None:
    """The unit goes on when it appears."""
    other = f"{scene.namespace}-late"
    unit = scene.render("web", config_map("a"), target_namespace=other)
    async with running_engine(scene):
        status = await scene.until(unit, lambda status: status.problems)
        assert other in status.problems[0].message
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
        await scene.client.create(NAMESPACES, made)
        await scene.synced(unit)
    assert (await scene.client.get(CONFIG_MAPS.ref("a", other))).raw
    await scene.client.delete(NAMESPACES.ref(other))
