"""How far an operation got is written down: a new process doesn't wait for waves that were passed."""

from tests.integration.engine.scene import Scene, config_map, deployment
from tests.integration.engine.waves import in_wave, make_ready
from tests.integration.engine.world import running_engine


async def test_a_restart_goes_on_at_its_wave(scene: Scene) -> None:
    """Though what was ready in the first wave isn't any more."""
    waves = [deployment("one"), in_wave(1, deployment("two")), in_wave(2, config_map("last"))]
    unit = scene.render("web", *waves)
    async with running_engine(scene):
        await scene.until(unit, lambda status: "one is InProgress" in status.message)
        await make_ready(scene, "one")
        await scene.until(unit, lambda status: "two is InProgress" in status.message)
    operation = scene.status(unit).operation
    assert operation is not None
    assert operation.wave == 0
    await make_ready(scene, "one", ready=0)
    await make_ready(scene, "two")
    async with running_engine(scene):
        await scene.has_applied(unit)
        assert await scene.names() == {"last"}
        assert scene.status(unit).operation is not None


async def test_a_new_revision_begins_at_the_first_wave(scene: Scene) -> None:
    """Whatever the one before it had passed."""
    unit = scene.render("web", deployment("one"), in_wave(1, deployment("two")), in_wave(2, config_map("last")))
    async with running_engine(scene):
        await scene.until(unit, lambda status: "one is InProgress" in status.message)
        await make_ready(scene, "one")
        await scene.until(unit, lambda status: "two is InProgress" in status.message)
    await make_ready(scene, "one", ready=0)
    await make_ready(scene, "two")
    scene.render("web", deployment("one"), in_wave(1, deployment("two")), in_wave(2, config_map("last", x="2")))
    async with running_engine(scene):
        await scene.until(unit, lambda status: status.revision == scene.texts[unit][0])
        assert await scene.names() == set()
        await make_ready(scene, "one")
        await scene.has_applied(unit)
        assert await scene.data("last") == {"x": "2"}
