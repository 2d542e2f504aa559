"""The record: ids are in it before anything is applied, the baseline after, and little else is ever written."""

from starling.engine import Phase, Readiness, UnitStatus
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map, deployment
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until

FINALIZER = "example.org/hold"


def names(status: UnitStatus) -> set[str]:
    """What the record names."""
    return {key.name for key in status.inventory}


async def test_a_revision_writes_it_before_and_after(scene: Scene) -> None:
    """New ids come in and the baseline goes, then all is applied, then the baseline is there; two writes in all."""
    unit = scene.render("web", config_map("a"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(unit)
        before, after = scene.history
        assert (names(before), set(before.inventory.values()), before.baseline) == ({"a", "b"}, {""}, "")
        assert before.operation is not None
        assert before.operation.phase is Phase.RUNNING
        assert after.baseline
        assert all(after.inventory.values())
        scene.history.clear()

        scene.render("web", config_map("a", x="2"), config_map("b"), config_map("c"))
        await scene.synced(unit)
        begun, ended = scene.history
        assert (names(begun), begun.baseline) == ({"a", "b", "c"}, "")
        assert names(ended) == {"a", "b", "c"}
        assert ended.baseline not in ("", after.baseline)
        assert ended.inventory != after.inventory


async def test_the_ids_are_written_before_the_objects(scene: Scene, traffic: Traffic) -> None:
    """At the first write nothing has been sent, at the second everything."""
    writes: list[int] = []
    scene.on_status = lambda _status: writes.append(len(traffic.writes()))
    unit = scene.render("web", config_map("a"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(unit)
        assert writes == [0, 2]
        scene.render("web", config_map("a", x="2"), config_map("b"))
        await scene.synced(unit)
        assert writes == [0, 2, 2, 3]


def first_words(scene: Scene, traffic: Traffic, unit: str) -> list[int]:
    """The writes to the cluster, counted from now on, at each word of another operation than the present one."""
    operation = scene.status(unit).operation
    assert operation is not None
    before, found = operation.digest, list[int]()

    def note(status: UnitStatus) -> None:
        if status.operation is not None and status.operation.digest != before:
            found.append(len(traffic.writes()))

    traffic.asked.clear()
    scene.on_status = note
    return found


async def test_a_revision_that_only_prunes_is_written_before(scene: Scene, traffic: Traffic) -> None:
    """It brings no new id, but whoever shares the record learns that another operation is under way."""
    unit = scene.render("web", config_map("a"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(unit)
        words = first_words(scene, traffic, unit)
        scene.render("web", config_map("a"))
        await scene.synced(unit)
        assert [(each.verb, each.name) for each in traffic.writes()] == [("delete", "b")]
        assert words[0] == 0


async def test_a_revision_after_an_unfinished_one_is_written_before(scene: Scene, traffic: Traffic) -> None:
    """All of its ids are in the record and the baseline went with the one before; its digest is news all the same."""
    later = in_wave(1, config_map("later"))
    unit = scene.render("web", deployment(), later)
    async with running_engine(scene):
        await scene.until(unit, lambda status: Readiness.IN_PROGRESS in status.objects)
        assert (names(scene.status(unit)), scene.status(unit).baseline) == ({"web", "later"}, "")
        words = first_words(scene, traffic, unit)
        scene.render("web", deployment(replicas=2), later)
        await until(lambda: bool(traffic.writes() and words))
        assert [(each.verb, each.name) for each in traffic.writes()] == [("apply", "web")]
        assert words[0] == 0


async def test_ids_leave_after_pruning(scene: Scene) -> None:
    """What is being deleted stays in the record until it is gone."""
    held = config_map("held")
    held["metadata"]["finalizers"] = [FINALIZER]
    unit = scene.render("web", config_map("a"), held)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("a"))
        await until(lambda: _terminating(scene))
        await scene.until(unit, lambda status: len(scene.history) > 2 and Readiness.TERMINATING in status.objects)
        assert names(scene.status(unit)) == {"a", "held"}
        await scene.client.json_patch(
            CONFIG_MAPS.ref("held", scene.namespace), [{"op": "remove", "path": "/metadata/finalizers"}], manager="them"
        )
        await scene.synced(unit)
        assert names(scene.status(unit)) == {"a"}


async def _terminating(scene: Scene) -> bool:
    return "deletionTimestamp" in (await scene.live("held"))["metadata"]


async def test_a_repair_writes_once(scene: Scene) -> None:
    """The baseline after it, and who made it necessary."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.history.clear()
        await scene.everything_seen("a")
        await scene.until(unit, lambda status: status.drift)
        (repaired,) = scene.history
        assert repaired.baseline
        assert names(repaired) == {"a"}
