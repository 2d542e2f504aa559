"""A unit with an identity writes with that account's rights; what it reads, the engine reads with its own."""

from collections.abc import Sequence

from starling.engine import IgnoredDifference, Readiness
from starling.kube import Identity, Resource
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, key_of
from tests.integration.engine.world import running_engine
from tests.waiting import until

# Ignored differences have the engine look at an object before it writes.
IGNORING: Json = {"interval": HOUR, "ignore_differences": (IgnoredDifference(json_pointers=("/data/z",)),)}
GROUP = "rbac.authorization.k8s.io"
ROLES = Resource(GROUP, "v1", "Role", "roles", namespaced=True)
BINDINGS = Resource(GROUP, "v1", "RoleBinding", "rolebindings", namespaced=True)


def account(scene: Scene) -> Identity:
    """A service account; whether it exists is nobody's concern."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{scene.namespace}")
    return Identity(f"system:serviceaccount:{scene.namespace}:deployer", groups)


async def allow(scene: Scene, *verbs: str, names: Sequence[str] = (), role: str = "deployer") -> None:
    """Let the account do this to ConfigMaps of the namespace, or to those of these names."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs), "resourceNames": list(names)}
    rights = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": role}, "rules": [rule]}
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": scene.namespace}
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "subjects": [subject],
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
    }
    await scene.client.apply(ROLES.ref(role, scene.namespace), rights)
    await scene.client.apply(BINDINGS.ref(role, scene.namespace), binding)


async def test_without_rights_a_write_is_refused_and_named(scene: Scene) -> None:
    """With the rights to write, and none to read or list, everything works: apply, repair and prune."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b"), identity=account(scene), **IGNORING)
    async with running_engine(scene):
        status = await scene.until(unit, lambda status: status.problems)
        assert status.readiness is Readiness.FAILED
        assert {problem.reason for problem in status.problems} == {"Forbidden"}
        assert {problem.key for problem in status.problems} == {
            key_of(config_map(name), scene.namespace) for name in ("a", "b")
        }
        assert f"ConfigMap {scene.namespace}/a" in status.message
        assert "deployer" in status.message
        await allow(scene, "create", "patch")
        await scene.synced(unit)
        ref = CONFIG_MAPS.ref("a", scene.namespace)
        await scene.client.merge_patch(ref, {"data": {"x": "theirs"}}, manager="someone")

        async def is_right() -> bool:
            return await scene.data("a") == {"x": "1"}

        await until(is_right)
        scene.render("web", config_map("a", x="1"), identity=account(scene), **IGNORING)
        status = await scene.until(unit, lambda status: status.problems)
        assert [problem.key for problem in status.problems] == [key_of(config_map("b"), scene.namespace)]
        assert await scene.names() == {"a", "b"}
        await allow(scene, "create", "patch", "delete")
        await scene.synced(unit)
        await until(lambda: len(scene.status(unit).inventory) == 1)
        assert await scene.names() == {"a"}


async def test_its_removal_is_the_account_s_as_well(scene: Scene) -> None:
    """Nothing is deleted with the engine's own rights."""
    await allow(scene, "create", "patch")
    unit = scene.render("web", config_map("a"), identity=account(scene))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", identity=account(scene), deleting=True)
        status = await scene.until(unit, lambda status: status.problems)
        assert status.problems[0].reason == "Forbidden"
        assert await scene.names() == {"a"}
        await allow(scene, "delete")
        await scene.until(unit, lambda status: status.removed)
        assert await scene.names() == set()


async def test_another_unit_has_rights_of_its_own(scene: Scene) -> None:
    """One without an identity acts as the engine."""
    poor = scene.render("poor", config_map("a"), identity=account(scene))
    rich = scene.render("rich", config_map("b"))
    async with running_engine(scene):
        await scene.synced(rich)
        await scene.until(poor, lambda status: status.problems)
        assert await scene.names() == {"b"}
