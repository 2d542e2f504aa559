"""What is InProgress for longer than the unit's timeout counts as Failed, and is well again when it becomes Current."""

from starling.engine import Readiness, SyncCompleted
from tests.integration.engine.scene import Scene, config_map, deployment
from tests.integration.engine.waves import in_wave, make_ready
from tests.integration.engine.world import running_engine


async def test_too_late_is_failed_until_it_is_there(scene: Scene) -> None:
    """The operation fails in time without anything having happened; when the wave is ready yet, it goes on."""
    completed: list[SyncCompleted] = []
    unit = scene.render("web", deployment(), in_wave(1, config_map("later")), timeout=0.5)
    async with running_engine(scene) as engine:
        engine.on_sync_completed(completed.append)
        status = await scene.until(unit, lambda status: status.readiness is Readiness.FAILED)
        assert status.message.startswith("not ready after 0.5 s: Deployment.apps")
        assert "web is InProgress" in status.message
        assert await scene.names() == set()
        await make_ready(scene)
        await scene.synced(unit)
        assert await scene.names() == {"later"}
        assert [each.operation.phase.value for each in completed] == ["Failed", "Succeeded"]


async def test_a_newer_revision_has_time_of_its_own(scene: Scene) -> None:
    """It begins InProgress, however late the one before it was."""
    unit = scene.render("web", deployment(), timeout=0.5)
    async with running_engine(scene):
        await scene.until(unit, lambda status: status.readiness is Readiness.FAILED)
        scene.history.clear()
        scene.render("web", deployment(replicas=2), timeout=0.5)
        await scene.until(unit, lambda status: status.applied_revision == scene.texts[unit][0])
        assert any(status.readiness is Readiness.IN_PROGRESS for status in scene.history)
        await scene.until(unit, lambda status: status.readiness is Readiness.FAILED)
