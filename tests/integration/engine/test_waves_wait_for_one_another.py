"""Between waves everything must be Current; who waits holds up nobody, neither others nor a newer revision."""

from starling.engine import Phase, Readiness, UnitStatus
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.kinds import own_kind
from tests.integration.engine.scene import HOUR, Scene, config_map, deployment
from tests.integration.engine.traffic import Asked, Traffic
from tests.integration.engine.waves import in_wave, make_ready
from tests.integration.engine.world import running_engine
from tests.waiting import until


def waits(status: UnitStatus) -> bool:
    """Whether the unit waits for its Deployment."""
    return "web is InProgress" in status.message and status.operation is not None


async def test_a_wave_begins_when_the_last_is_current(scene: Scene) -> None:
    """Not before; and the operation is over when all waves are done."""
    waves = [in_wave(-1, config_map("first")), deployment(), in_wave(2, config_map("last"))]
    unit = scene.render("web", *waves)
    async with running_engine(scene):
        status = await scene.until(unit, waits)
        assert await scene.names() == {"first"}
        assert status.readiness is Readiness.IN_PROGRESS
        assert status.operation is not None
        assert (status.operation.phase, status.operation.wave) == (Phase.RUNNING, -1)
        assert status.applied_revision == ""
        await make_ready(scene)
        await scene.synced(unit)
        assert await scene.names() == {"first", "last"}


async def test_a_tier_begins_when_the_one_before_is_done(scene: Scene, traffic: Traffic) -> None:
    """Within a wave kinds come in order, and nothing is sent before the answers to what comes first."""
    done: list[str] = []

    async def note(asked: Asked) -> None:
        if (asked.verb, asked.name) == ("apply", "second"):
            done.extend(event.task.key.name for event in scene.events if event.task.key is not None)

    traffic.before = note
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "first"}}
    unit = scene.render("web", config_map("second"), account)
    async with running_engine(scene):
        await scene.synced(unit)
    assert done == ["first"]


async def test_crds_that_are_established_are_no_wave_that_is_done(scene: Scene) -> None:
    """What else is in their wave is still to be waited for, by whoever goes on."""
    async with own_kind(scene.client, f"{scene.namespace}.test", "Namespaced") as kind:
        unit = scene.render("web", kind.crd(), deployment(), in_wave(1, config_map("later")))
        async with running_engine(scene):
            status = await scene.until(unit, waits)
            assert status.operation is not None
            assert status.operation.wave is None
            assert await scene.names() == set()
            await make_ready(scene)
            await scene.synced(unit)
            assert await scene.names() == {"later"}


async def test_waiting_holds_no_worker_and_asks_nothing(scene: Scene, traffic: Traffic) -> None:
    """With one processor of each kind, others are synced, and there is no request or rendering for who waits."""
    waiting = scene.render("waits", deployment(), in_wave(1, config_map("later")))
    async with running_engine(scene, processors=1):
        await scene.until(waiting, waits)
        traffic.asked.clear()
        before = scene.generated
        other = scene.render("other", config_map("other"))
        await scene.synced(other)
        assert [each.name for each in traffic.writes()] == ["other"]
        assert scene.generated <= before + 3  # the other's alone: once for each kind that had to be seen first
        assert await scene.names() == {"other"}


async def test_a_newer_revision_is_not_blocked(scene: Scene) -> None:
    """A wave that never gets ready doesn't keep its own remedy out."""
    unit = scene.render("web", deployment(), in_wave(1, config_map("later")), config_map("rest"))
    async with running_engine(scene, processors=1):
        await scene.until(unit, waits)
        scene.render("web", deployment(), in_wave(1, config_map("later")), config_map("rest", x="2"))
        await until(lambda: scene.status(unit).revision == scene.texts[unit][0])

        async def is_new() -> bool:
            return await scene.data("rest") == {"x": "2"}

        await until(is_new)
        scene.render("web", config_map("rest", x="2"), in_wave(1, config_map("later")))
        await scene.synced(unit)
        assert await scene.names() == {"rest", "later"}


async def test_drift_is_put_right_meanwhile(scene: Scene) -> None:
    """Waves gate what is new: what was there already and needn't change is repaired at once, in any wave."""
    last = in_wave(1, config_map("last", x="1"))
    unit = scene.render("web", config_map("first"), last)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("first"), deployment(), last, in_wave(1, config_map("more")))
        await scene.until(unit, waits)
        await scene.client.merge_patch(
            CONFIG_MAPS.ref("last", scene.namespace), {"data": {"x": "theirs"}}, manager="someone"
        )

        async def is_right() -> bool:
            return await scene.data("last") == {"x": "1"}

        await until(is_right)
        await scene.client.delete(CONFIG_MAPS.ref("last", scene.namespace))
        await until(is_right)
        assert await scene.names() == {"first", "last"}
        assert waits(scene.status(unit))


async def test_what_is_unchanged_is_waited_for_too(scene: Scene) -> None:
    """A Deployment that was there and isn't ready holds up the next wave of a new revision."""
    unit = scene.render("web", deployment())
    async with running_engine(scene):
        await scene.has_applied(unit)
        scene.render("web", deployment(), in_wave(1, config_map("later")))
        await scene.until(unit, lambda status: status.revision == scene.texts[unit][0] and waits(status))
        await scene.synced(scene.render("other", config_map("other")))  # so that there was time for more
        assert await scene.names() == {"other"}
        await make_ready(scene)
        await scene.synced(unit)
        assert await scene.names() == {"other", "later"}


async def test_an_object_that_is_going_is_waited_for_and_made_anew(scene: Scene) -> None:
    """While another of its kind is applied; and whatever wave the unit waits at."""
    held = config_map("held", x="1")
    unit = scene.render("web", held, in_wave(1, deployment()), in_wave(2, config_map("later")), interval=HOUR)
    ref = CONFIG_MAPS.ref("held", scene.namespace)
    async with running_engine(scene):
        await scene.until(unit, waits)
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": ["example.com/wait"]}}, manager="someone")
        await scene.client.delete(ref)
        await scene.until(unit, lambda status: status.objects.get(Readiness.TERMINATING))
        scene.render("web", held, config_map("new"), in_wave(1, deployment()), in_wave(2, config_map("later")))
        await until(lambda: "new" in {key.name for key in scene.status(unit).inventory})
        await scene.until(unit, lambda status: status.objects.get(Readiness.CURRENT))
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
        await make_ready(scene)
        await scene.synced(unit)
        assert await scene.names() == {"held", "new", "later"}


async def test_one_that_is_going_stops_no_other_of_its_kind(scene: Scene) -> None:
    """Both are in one step of the plan, and nothing goes wrong on the way."""
    unit = scene.render("web", config_map("held"), config_map("other"), interval=HOUR)
    ref = CONFIG_MAPS.ref("held", scene.namespace)
    async with running_engine(scene):
        await scene.synced(unit)
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": ["example.com/wait"]}}, manager="someone")
        await scene.client.delete(ref)
        await scene.until(unit, lambda status: status.objects.get(Readiness.TERMINATING))
        scene.render("web", config_map("held"), config_map("other", x="2"), interval=HOUR)

        async def is_new() -> bool:
            return await scene.data("other") == {"x": "2"}

        await until(is_new)
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
        await scene.synced(unit)
        assert await scene.names() == {"held", "other"}
    assert not [status for status in scene.history if status.problems]
