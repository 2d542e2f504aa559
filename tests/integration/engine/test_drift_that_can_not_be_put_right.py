"""Drift whose repair is refused was taken once, however often the repair is tried, and is reported when it is done."""

from starling.kube import Forbidden
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.test_units_act_as_their_account import account, allow
from tests.integration.engine.world import running_engine
from tests.waiting import until

TRIES = 5
"""More than it takes to call a quarrel one."""


async def may_write_no_more(scene: Scene) -> None:
    """Take the account's right to patch, and wait until it holds."""
    await allow(scene, "create")
    poor = scene.client.impersonating(account(scene))

    async def refused() -> bool:
        try:
            await poor.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), {}, manager="someone", dry_run=True)
        except Forbidden:
            return True
        return False

    await until(refused)


async def test_it_is_counted_once_it_was_put_right(scene: Scene) -> None:
    """No drift and no quarrel is reported of what only failed again and again; afterwards it is one."""
    await allow(scene, "create", "patch")
    unit = scene.render("web", config_map("a", x="1"), identity=account(scene), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        await may_write_no_more(scene)
        ref = CONFIG_MAPS.ref("a", scene.namespace)
        await scene.client.merge_patch(ref, {"data": {"x": "theirs"}}, manager="someone")
        await until(lambda: [event.outcome for event in scene.events].count("failed") >= TRIES)
        status = scene.status(unit)
        assert [problem.reason for problem in status.problems] == ["Forbidden"]
        assert (status.drift, status.contended) == ((), ())
        await allow(scene, "create", "patch")
        status = await scene.until(unit, lambda status: not status.problems)
        assert await scene.data("a") == {"x": "1"}
        assert [(drift.fields, drift.manager) for drift in status.drift] == [(("data.x",), "someone")]
        assert status.contended == ()
