"""What managed fields can't show is mended by applying everything again, which leaves alone what is right."""

from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment
from tests.integration.engine.test_units_act_as_their_account import account, allow
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until

SOON = 1.0


def with_env(*names: str) -> Json:
    """A Deployment with these variables, in this order."""
    content = deployment()
    container = content["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": "1"} for name in names]
    return content


async def test_a_reordered_list_is_put_in_order(scene: Scene) -> None:
    """No event tells it for ours, and no drift is reported."""
    unit = scene.render("web", with_env("A", "B"), interval=SOON)
    async with running_engine(scene):
        await scene.has_applied(unit)
        path = "/spec/template/spec/containers/0/env"
        order = [{"name": name, "value": "1"} for name in "BA"]
        patch = [{"op": "replace", "path": path, "value": order}]
        ref = DEPLOYMENTS.ref("web", scene.namespace)
        patched: Json = (await scene.client.json_patch(ref, patch, manager="someone")).json()
        assert names(patched) == ["B", "A"]

        async def is_right() -> bool:
            return names(await scene.live("web", "Deployment")) == ["A", "B"]

        await until(is_right)
        assert scene.status(unit).drift == ()


def names(live: Json) -> list[str]:
    """The variables, in their order."""
    return [each["name"] for each in live["spec"]["template"]["spec"]["containers"][0]["env"]]


async def test_what_is_right_is_left_alone(scene: Scene, traffic: Traffic) -> None:
    """Applied again and again, an object's resourceVersion stays; and nothing is written down."""
    unit = scene.render("web", config_map("a", x="1"), interval=SOON)
    async with running_engine(scene):
        await scene.synced(unit)
        before = (await scene.live("a"))["metadata"]["resourceVersion"]
        await until(lambda: traffic.count()["apply"] >= 3)
        await until(lambda: [event.outcome for event in scene.events].count("unchanged") >= 2)
        assert (await scene.live("a"))["metadata"]["resourceVersion"] == before
        assert len(scene.history) == 2
        assert scene.status(unit).drift == ()


async def test_within_the_interval_nothing_is_applied(scene: Scene, traffic: Traffic) -> None:
    """Looks without a reason send nothing."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        before = scene.generated
        engine.refresh(unit)
        await until(lambda: scene.generated > before)
        assert traffic.count()["apply"] == 1


async def test_what_can_not_be_applied_again_does_not_concern_the_rest(scene: Scene, traffic: Traffic) -> None:
    """While one object's apply is tried over and over, the others aren't written along."""
    await allow(scene, "create", "patch")
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"), identity=account(scene), interval=5.0)
    async with running_engine(scene):
        await scene.synced(unit)
        await allow(scene, "create")
        await allow(scene, "patch", names=("a",), role="one")
        traffic.asked.clear()
        await scene.until(unit, lambda status: status.problems)
        await until(lambda: applies(traffic, "b") >= 5)
        assert applies(traffic, "a") <= 2
        assert [problem.key.name for problem in scene.status(unit).problems if problem.key is not None] == ["b"]
        await allow(scene, "create", "patch")
        await scene.synced(unit)


def applies(traffic: Traffic, name: str) -> int:
    """How often an object was applied."""
    return [each.name for each in traffic.writes()].count(name)
