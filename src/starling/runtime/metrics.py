"""Prometheus metrics: what controllers, informers and recorders count anyway, read when someone asks."""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from starling.runtime.controller import BUCKETS, Outcome
from starling.runtime.events import Recorder
from starling.runtime.group import Group

__all__ = ["Metrics"]

_BOUNDS = (*(str(bound) for bound in BUCKETS), "+Inf")


class Metrics(Collector):
    """A collector for a CollectorRegistry. Mutable: which groups and recorders it reads, and whether we lead."""

    def __init__(self) -> None:
        self._groups: list[Group] = []
        self._recorders: list[Recorder] = []
        self._leads = False

    def observe(self, group: Group) -> Group:
        """Have a group's members in the metrics, labelled with its name, until `forget`."""
        self._groups.append(group)
        return group

    def forget(self, group: Group) -> None:
        """Leave a group out again."""
        self._groups.remove(group)

    def observe_events(self, recorder: Recorder) -> Recorder:
        """Have a recorder's counts in the metrics."""
        self._recorders.append(recorder)
        return recorder

    def leads(self, held: bool) -> None:
        """Say whether this process leads; what `lead` takes as `told`."""
        self._leads = held

    def collect(self) -> Iterator[Metric]:
        """Everything as it is now."""
        yield GaugeMetricFamily("starling_leader", "Whether this process leads.", value=float(self._leads))
        yield from self._controllers()
        yield from self._informers()
        yield from self._events()

    def _controllers(self) -> Iterator[Metric]:
        labels = ["group", "controller"]
        outcomes = CounterMetricFamily(
            "starling_reconciles", "Reconciles that ended, by how they did.", labels=[*labels, "outcome"]
        )
        durations = HistogramMetricFamily("starling_reconcile_seconds", "How long reconciles took.", labels=labels)
        waiting = GaugeMetricFamily("starling_queue_depth", "Keys that wait to be reconciled.", labels=labels)
        failing = GaugeMetricFamily("starling_failing_keys", "Keys that failed and will be retried.", labels=labels)
        for group in self._groups:
            for controller in group.controllers:
                names = [group.name, controller.name]
                for outcome in Outcome:
                    outcomes.add_metric([*names, outcome], controller.outcomes[outcome])
                counts = zip(_BOUNDS, accumulate(controller.durations.counts), strict=True)
                durations.add_metric(names, [*counts], controller.durations.total)
                waiting.add_metric(names, len(controller))
                failing.add_metric(names, controller.failing)
        yield from (outcomes, durations, waiting, failing)

    def _informers(self) -> Iterator[Metric]:
        labels = ["group", "resource"]
        objects = GaugeMetricFamily("starling_informer_objects", "Objects that are known.", labels=labels)
        losses = CounterMetricFamily("starling_informer_interruptions", "Times a watch was interrupted.", labels=labels)
        unread = CounterMetricFamily(
            "starling_informer_unreadable", "States of objects that couldn't be decoded.", labels=labels
        )
        up = GaugeMetricFamily("starling_informer_up", "Whether a watch is in sync and connected.", labels=labels)
        for group in self._groups:
            for informer in group.informers:
                names = [group.name, str(informer.resource)]
                objects.add_metric(names, len(informer))
                losses.add_metric(names, informer.interruptions)
                unread.add_metric(names, informer.unreadable)
                up.add_metric(names, float(informer.ready and informer.trouble is None))
        yield from (objects, losses, unread, up)

    def _events(self) -> Iterator[Metric]:
        written = sum(recorder.written for recorder in self._recorders)
        dropped = sum(recorder.dropped for recorder in self._recorders)
        yield CounterMetricFamily("starling_events_written", "Kubernetes Events written.", value=written)
        yield CounterMetricFamily("starling_events_dropped", "Kubernetes Events that couldn't be.", value=dropped)
