"""A field that one manager takes again and again is left to it for a while: no hot loop against an operator."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from starling.engine import Limits
from starling.kube import Changed, Selection, watch
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap
from tests.integration.engine.scene import HOUR, Scene, config_map, key_of
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import QUICK, running_engine
from tests.waiting import until

LONG = Limits(first_retry=0.2, longest_retry=1.0, contention_wait=600.0)


@asynccontextmanager
async def an_operator(scene: Scene, name: str, value: str) -> AsyncIterator[list[str]]:
    """Someone who sets a ConfigMap's `x` whenever it is something else; what it has set so far."""
    done: list[str] = []

    async def insist() -> None:
        selection = Selection(scene.namespace, fields=f"metadata.name={name}")
        async with aclosing(watch(scene.client, CONFIG_MAPS, ConfigMap, selection)) as events:
            async for event in events:
                if isinstance(event, Changed) and event.object.data.get("x") != value:
                    ref = CONFIG_MAPS.ref(name, scene.namespace)
                    await scene.client.merge_patch(ref, {"data": {"x": value}}, manager="operator")
                    done.append(value)

    task = asyncio.create_task(insist())
    try:
        yield done
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_after_three_times_it_is_left_and_reported(scene: Scene, traffic: Traffic) -> None:
    """Three repairs, then none; the status names field and manager; other objects of the unit are put right."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"), interval=HOUR)
    async with running_engine(scene, limits=LONG):
        await scene.synced(unit)
        traffic.asked.clear()
        async with an_operator(scene, "a", "theirs") as done:
            status = await scene.until(unit, lambda status: status.contended)
            (contended,) = status.contended
            assert contended.key == key_of(config_map("a"), scene.namespace)
            assert (contended.fields, contended.manager) == (("data.x",), "operator")
            assert contended.time
            await until(lambda: len(done) == 4)
            await scene.everything_seen("b")
            assert [each.name for each in traffic.writes()] == ["a", "a", "a", "b"]
        assert await scene.data("a") == {"x": "theirs"}


async def test_after_the_wait_it_is_tried_again(scene: Scene, traffic: Traffic) -> None:
    """And where the other has given up, it stays as git says."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene, limits=QUICK):
        await scene.synced(unit)
        traffic.asked.clear()
        async with an_operator(scene, "a", "theirs") as done:
            await until(lambda: len(done) == 5)  # four times we put it right, the fourth after the first wait
            assert len(traffic.writes()) == 4

        async def is_right() -> bool:
            return await scene.data("a") == {"x": "1"}

        await until(is_right)
        assert len(traffic.writes()) == 5


async def test_a_new_manifest_is_applied_all_the_same(scene: Scene) -> None:
    """Only repairs rest: what git says anew is brought at once."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene, limits=LONG):
        await scene.synced(unit)
        async with an_operator(scene, "a", "theirs") as done:
            await scene.until(unit, lambda status: status.contended)
            await until(lambda: len(done) == 4)
        scene.render("web", config_map("a", x="1", y="new"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.data("a") == {"x": "1", "y": "new"}


async def test_removals_by_nobody_are_no_contention(scene: Scene) -> None:
    """Who takes a field away without owning anything can't be told, and is put right every time."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene, limits=LONG):
        await scene.synced(unit)
        ref = CONFIG_MAPS.ref("a", scene.namespace)
        for times in range(1, 6):
            await scene.client.json_patch(ref, [{"op": "remove", "path": "/data/x"}], manager="someone")
            await scene.until(unit, lambda status, times=times: len(status.drift) == times)  # type: ignore[misc] # a lambda's default
            assert await scene.data("a") == {"x": "1"}
        assert scene.status(unit).contended == ()


async def test_taken_again_while_others_are_still_put_right(scene: Scene, traffic: Traffic) -> None:
    """Within the second of the repair our entry reads as it did before: it is put right all the same."""
    await until(lambda: time.time() % 1 < 0.1)  # entries are dated in whole seconds: all below is to be in one
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"), interval=HOUR)
    drifted: list[str] = []
    async with running_engine(scene) as engine:
        engine.on_resource_updated(lambda event: drifted.append(event.change.key.name) if event.change.drifted else ())
        await scene.synced(unit)
        a, b = (CONFIG_MAPS.ref(name, scene.namespace) for name in "ab")
        traffic.events.clear()
        for ref in (a, b):
            await scene.client.merge_patch(ref, {"data": {"x": "9"}}, manager="someone")
        traffic.held = frozenset("b")
        traffic.answers.clear()
        traffic.events.set()

        async def is_right() -> bool:
            return await scene.data("a") == {"x": "1"}

        await until(is_right)
        before = drifted.count("a")
        await scene.client.merge_patch(a, {"data": {"x": "9"}}, manager="someone")
        await until(lambda: drifted.count("a") > before)
        traffic.answers.set()
        await until(is_right)
