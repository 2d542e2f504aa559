"""Events appear next to their objects, repetitions as a series, and what can't be written holds up nobody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starling.api import ObjectMeta, RolloutPolicy
from starling.api.v1alpha1.rolloutpolicy import Rollout
from starling.kube import Client, DeleteOptions, Identity, Selection
from starling.runtime import ObjectReference, Recorder
from starling.runtime.events import EVENTS
from tests.unit.test_workqueue import VirtualClock
from tests.waiting import until

CONTROLLER = "starling.dev/test"


@asynccontextmanager
async def writing(recorder: Recorder) -> AsyncIterator[None]:
    """The recorder at work while the block runs."""
    task = asyncio.create_task(recorder.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def events(client: Client, namespace: str, name: str) -> list[dict[str, Any]]:
    """Those about an object of that name."""
    found = (await client.list(EVENTS, dict[str, Any], Selection(namespace))).items
    return [event for event in found if event["regarding"]["name"] == name]


def about(namespace: str, name: str = "web") -> ObjectReference:
    """An object that need not be there."""
    return ObjectReference("starling.dev/v1alpha1", "Module", namespace, name, "0f0e", "7")


async def test_an_event_says_what_happened_to_what(client: Client, namespace: str) -> None:
    """By whom, why, in a note that fits; a warning is one."""
    recorder = Recorder(client, CONTROLLER, "x" * 200)
    async with writing(recorder):
        recorder.event(about(namespace), "TargetChanged", "now at v1.2.3")
        recorder.event(about(namespace), "Failed", "é" * 3000 + "\ud800", warning=True, action="Assemble")
        await until(lambda: recorder.written == 2)
    first, second = sorted(await events(client, namespace, "web"), key=lambda event: str(event["type"]))
    assert (first["reason"], first["note"], first["type"]) == ("TargetChanged", "now at v1.2.3", "Normal")
    assert (first["action"], first["reportingController"]) == ("Reconcile", CONTROLLER)
    assert first["regarding"] == {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Module",
        "namespace": namespace,
        "name": "web",
        "uid": "0f0e",
        "resourceVersion": "7",
    }
    assert (second["reason"], second["type"], second["action"]) == ("Failed", "Warning", "Assemble")
    assert second["note"].endswith("é…")


async def test_repetitions_are_a_series(client: Client, namespace: str) -> None:
    """One Event, its count written once a minute; one that the server has dropped is written anew."""
    clock = VirtualClock()
    recorder = Recorder(client, CONTROLLER, "me", clock=clock)
    async with writing(recorder):
        recorder.event(about(namespace), "Failed", "why")
        await until(lambda: recorder.written == 1)
        for _ in range(5):
            await clock.advance(5)
            recorder.event(about(namespace), "Failed", "why")
        await clock.advance(0)
        (event,) = await events(client, namespace, "web")
        assert event.get("series") is None
        await clock.advance(60)
        await until(lambda: recorder.written == 2)
        (event,) = await events(client, namespace, "web")
        assert event["series"] == {"count": 6, "lastObservedTime": "2026-01-01T00:00:25.000000Z"}
        name = event["metadata"]["name"]
        await client.delete(EVENTS.ref(name, namespace), DeleteOptions())
        recorder.event(about(namespace), "Failed", "why")
        await clock.advance(60)
        await until(lambda: recorder.written == 3)
        (event,) = await events(client, namespace, "web")
        assert event["series"]["count"] == 7
        assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"


async def test_an_object_in_no_namespace_has_its_events_in_default(client: Client, namespace: str) -> None:
    """As Kubernetes' own."""
    recorder = Recorder(client, CONTROLLER, "me")
    async with writing(recorder):
        recorder.event(ObjectReference("v1", "Namespace", "", namespace), "Seen", "hello")
        await until(lambda: recorder.written == 1)
    (event,) = await events(client, "default", namespace)
    assert event["regarding"]["kind"] == "Namespace"


async def test_what_can_not_be_written_is_dropped(client: Client, namespace: str) -> None:
    """Refused by the server, or about nothing that can be: counted, and the next is written."""
    recorder = Recorder(client.impersonating(Identity("nobody")), CONTROLLER, "me")
    async with writing(recorder):
        recorder.event(about(namespace), "Failed", "why")
        await until(lambda: recorder.dropped == 1)
    recorder = Recorder(client, CONTROLLER, "me")
    async with writing(recorder):
        recorder.event(about("no/namespace"), "Failed", "why")
        recorder.event(about(namespace, "Not A Name"), "Failed", "why")
        recorder.event(about(namespace), "", "no reason")
        recorder.event(about(namespace), "Failed", "Bearer 0123456789abcdef")
        await until(lambda: recorder.written == 1)
    assert recorder.dropped == 3
    (event,) = await events(client, namespace, "web")
    assert event["note"] == "Bearer ***"


def test_a_reference_is_made_of_an_object() -> None:
    """Its kind and which state of which object."""
    meta = ObjectMeta(name="safe", namespace="ns", uid="u", resource_version="9")
    policy = RolloutPolicy(metadata=meta, spec=Rollout())
    expected = ObjectReference("starling.dev/v1alpha1", "RolloutPolicy", "ns", "safe", "u", "9")
    assert ObjectReference.of(policy) == expected
