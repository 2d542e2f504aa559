"""What controllers run on: a view of the world, a queue of what to look at, and how the process tells of itself.

    informer     one kind, listed and watched; tells its listeners each change as (before, after)
    index        … found by what they belong to
    store        … kept by Key: which state is the newer, the watch's or our own write's
    controller   Keys in, `reconcile(key) -> Result` one at a time per key; which errors are tried again, and when
    group        informers, controllers and tasks that run together: all informers in sync before anything else begins
    leading      leader election by a Lease: work that runs in one process of several
    events       Kubernetes Events, repetitions told as a series
    metrics      Prometheus metrics, read from the above when asked for        server    /healthz, /readyz, /metrics
    logs         JSON or text lines on stderr, without what looks like credentials

    group = Group("hub")
    modules = group.informer(Informer(client, resource, Module))
    controller = group.controller(Controller("module", reconcile))
    modules.listen(lambda before, after: controller.add(Key(...)))
    await lead(client, "starling", "starling-system", identity, group.run)

A reconcile re-reads what it needs from informers by its key, writes, and hands each write's answer to `Informer.learn`,
so that the next one sees it before the watch tells. Groups run once: work that may lead again builds its group anew.
"""

from starling.runtime.controller import Controller, Outcome, Result
from starling.runtime.events import ObjectReference, Recorder
from starling.runtime.group import Group
from starling.runtime.index import Index
from starling.runtime.informer import Informer
from starling.runtime.leading import LeaseSettings, lead
from starling.runtime.logs import redacted, structured_logs
from starling.runtime.metrics import Metrics
from starling.runtime.server import serve
from starling.runtime.store import Key, key_of

__all__ = [
    "Controller",
    "Group",
    "Index",
    "Informer",
    "Key",
    "LeaseSettings",
    "Metrics",
    "ObjectReference",
    "Outcome",
    "Recorder",
    "Result",
    "key_of",
    "lead",
    "redacted",
    "serve",
    "structured_logs",
]
