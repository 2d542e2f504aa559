"""Metrics read controllers, informers and recorders when they are asked for."""

import asyncio

import msgspec
from prometheus_client import CollectorRegistry

from starling.errors import InputError
from starling.kube import Access, Client, Metadata, Resource
from starling.runtime import Controller, Group, Informer, Key, Metrics, ObjectReference, Recorder
from tests.unit.test_workqueue import VirtualClock

THINGS = Resource("example.dev", "v1", "Thing", "things", namespaced=True)


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata


async def nowhere() -> Access:
    """Nothing here is sent."""
    raise AssertionError


async def reconcile(key: Key) -> None:
    """One of the keys is wrong."""
    if key.name == "wrong":
        raise InputError("wrong")


async def test_members_of_a_group_are_in_the_metrics_until_forgotten() -> None:
    """By the group's name and their own: outcomes, durations, what waits, what is known."""
    clock = VirtualClock()
    group = Group("hub")
    controller = group.controller(Controller("module", reconcile, clock=clock))
    informer = group.informer(Informer(Client(nowhere), THINGS, Thing))
    metrics = Metrics()
    registry = CollectorRegistry()
    registry.register(metrics)
    metrics.observe(group)
    informer.learn(Thing(Metadata("a", "ns", "uid", "1")))
    for name in ("a", "b", "wrong"):
        controller.add(Key("ns", name))
    labels = {"group": "hub", "controller": "module"}
    assert registry.get_sample_value("starling_queue_depth", labels) == 3
    running = asyncio.create_task(controller.run())
    await clock.advance(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    samples = {
        ("starling_queue_depth", ()): 0,
        ("starling_reconciles_total", (("outcome", "succeeded"),)): 2,
        ("starling_reconciles_total", (("outcome", "invalid"),)): 1,
        ("starling_reconciles_total", (("outcome", "failed"),)): 0,
        ("starling_reconcile_seconds_count", ()): 3,
        ("starling_reconcile_seconds_bucket", (("le", "0.005"),)): 3,
        ("starling_failing_keys", ()): 0,
    }
    assert {
        (name, more): registry.get_sample_value(name, {**labels, **dict(more)}) for name, more in samples
    } == samples
    things = {"group": "hub", "resource": "Thing.example.dev"}
    assert registry.get_sample_value("starling_informer_objects", things) == 1
    assert registry.get_sample_value("starling_informer_interruptions_total", things) == 0
    informer.unreadable = 2
    assert registry.get_sample_value("starling_informer_unreadable_total", things) == 2
    assert registry.get_sample_value("starling_informer_up", things) == 0
    metrics.forget(group)
    assert registry.get_sample_value("starling_informer_objects", things) is None


def test_leading_and_events_are_counted_too() -> None:
    """Whether this process leads, and events that were written or dropped."""
    metrics = Metrics()
    registry = CollectorRegistry()
    registry.register(metrics)
    recorder = metrics.observe_events(Recorder(Client(nowhere), "starling.dev/test", "me", limit=1))
    for number in range(3):
        recorder.event(ObjectReference("v1", "Pod", "ns", "a"), "Reason", str(number))
    assert registry.get_sample_value("starling_events_dropped_total") == 2
    assert registry.get_sample_value("starling_events_written_total") == 0
    assert registry.get_sample_value("starling_leader") == 0
    metrics.leads(True)
    assert registry.get_sample_value("starling_leader") == 1
