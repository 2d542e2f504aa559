"""Secrets: stringData is data, its keys are watched over, and no value is told to anyone, whatever goes wrong."""

import base64
import logging

import pytest

from starling.engine import Engine
from starling.kube import Resource
from tests.integration.engine.scene import HOUR, Json, Scene, config_map
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
VALUE = "hunter2-of-the-sea"
ENCODED = base64.b64encode(VALUE.encode()).decode()


def secret(name: str = "s", **fields: object) -> Json:
    """A Secret's manifest."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


async def data(scene: Scene) -> dict[str, str]:
    """What is in the live Secret, decoded."""
    live = await scene.live("s", SECRETS)
    return {name: base64.b64decode(value).decode() for name, value in live.get("data", {}).items()}


async def test_string_data_is_applied_watched_over_and_removed(scene: Scene) -> None:
    """A key that someone changes is put right, and one that leaves the manifest goes."""
    unit = scene.render("web", secret(stringData={"a": VALUE, "b": "2"}, data={"c": ENCODED}), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        assert await data(scene) == {"a": VALUE, "b": "2", "c": VALUE}
        ref = SECRETS.ref("s", scene.namespace)
        await scene.client.merge_patch(ref, {"stringData": {"a": "theirs"}}, manager="someone")

        async def is_right() -> bool:
            return (await data(scene))["a"] == VALUE

        await until(is_right)
        status = await scene.until(unit, lambda status: status.drift)
        assert [(drift.fields, drift.manager) for drift in status.drift] == [(("data.a",), "someone")]
        scene.render("web", secret(stringData={"a": VALUE}), interval=HOUR)
        await scene.synced(unit)
        assert await data(scene) == {"a": VALUE}
        assert VALUE not in everything_told(scene)


def everything_told(scene: Scene) -> str:
    """All that was written down or told of the units."""
    return f"{scene.history!r} {scene.events!r} {scene.units!r} {[str(event.task) for event in scene.events]}"


INVALID = {
    "data that is no base64": secret(data={"a": f"{VALUE}!"}),
    "a type that wants other keys": secret(type="kubernetes.io/tls", stringData={"a": VALUE}),
    "a docker config that is none": secret(
        type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": VALUE}
    ),
    "a key that is no name": secret(stringData={f"a {VALUE}/": VALUE}),
    "stringData that is no text": secret(stringData={"a": [VALUE]}),
    "data that is no mapping": secret(data=VALUE),
    "a field that nobody knows": secret(stringData={"a": VALUE}, immutable=VALUE),
}


@pytest.mark.parametrize("why", INVALID)
async def test_an_invalid_secret_is_refused_without_its_values(
    scene: Scene, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    """Neither status nor problems nor logs nor events have any; the object and a cause are there."""
    caplog.set_level(logging.DEBUG)
    told: list[object] = []
    unit = scene.render("web", INVALID[why], config_map("a"), in_wave(1, config_map("b")))
    async with running_engine(scene) as engine:
        tell_everything(engine, told)
        status = await scene.until(unit, lambda status: status.problems)
    [problem] = status.problems
    assert "Secret" in problem.message
    for value in (VALUE, ENCODED, f"{VALUE}!"):
        assert value not in everything_told(scene)
        assert value not in caplog.text
        assert value not in repr(told)
    assert "b" not in await scene.names()


def tell_everything(engine: Engine, told: list[object]) -> None:
    """Have all that an engine tells noted."""
    engine.on_sync_completed(told.append)
    engine.on_resource_updated(told.append)
    engine.on_resource_removed(told.append)
    engine.on_sync_event(told.append)
    engine.on_before_sync(lambda unit, tasks: told.append((unit, tasks)))


async def test_a_secret_that_others_fight_over_is_told_by_its_fields(scene: Scene) -> None:
    """Immutable ones that change as well: the refusal has no value."""
    unit = scene.render("web", secret(stringData={"a": VALUE}, immutable=True), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", secret(stringData={"a": f"{VALUE}-2"}, immutable=True), interval=HOUR)
        status = await scene.until(unit, lambda status: status.problems)
        assert "immutable" in status.problems[0].message
        assert VALUE not in everything_told(scene)
