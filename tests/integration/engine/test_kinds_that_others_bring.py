"""A kind that wasn't served and is by now is picked up by itself."""

from starling.engine import Limits
from starling.engine.prepare import UNKNOWN_KIND
from tests.integration.engine.edits import CRDS
from tests.integration.engine.kinds import own_kind
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.world import running_engine


async def test_a_crd_that_someone_else_installs(scene: Scene) -> None:
    """Its resource is applied soon, though the unit's own next try is far."""
    never = Limits(first_retry=HOUR, longest_retry=HOUR)
    async with own_kind(scene.client, f"{scene.namespace}.test") as kind:
        unit = scene.render("web", kind.widget("w"), config_map("a"), interval=HOUR)
        async with running_engine(scene, limits=never):
            status = await scene.until(unit, lambda status: status.problems)
            assert [problem.reason for problem in status.problems] == [UNKNOWN_KIND]
            await scene.client.create(CRDS, kind.crd())
            await scene.synced(unit)
            assert await scene.live("w", kind.resource)
            assert scene.status(unit).problems == ()
