"""What plans are made from, in a word each: desired objects, records of live ones, operations."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from starling.engine.cache import Record
from starling.engine.health import Readiness
from starling.engine.order import sort_key, tier
from starling.engine.prepare import Desired, Prepared
from starling.engine.tasks import Action, Plan, Snapshot, Task
from starling.engine.unit import Operation, Phase, Problem, Unit
from starling.objects import GroupVersionKind, Manifest, ObjectKey, digest

UNIT = Unit(id="home/shop/Sync.web@edge", cluster="edge")
OTHER = "home/shop/Sync.other@edge"
CRD = "apiextensions.k8s.io/v1 CustomResourceDefinition"
KINDS = (
    "v1 Namespace",
    CRD,
    "v1 ServiceAccount",
    "v1 ConfigMap",
    "apps/v1 Deployment",
    "example.com/v1 Widget",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
)


def key(name: str, kind: str = "v1 ConfigMap", namespace: str = "") -> ObjectKey:
    """The key of an object, given its kind with its version."""
    gvk = GroupVersionKind.from_api_version(*kind.split())
    return ObjectKey(gvk.group, gvk.kind, namespace, name)


def desired(
    name: str,
    wave: int = 0,
    kind: str = "v1 ConfigMap",
    namespace: str = "",
    *,
    content: str = "d1",
    create_only: bool = False,
) -> Desired:
    """An object as it is to be applied; `content` stands for all that is in it."""
    api_version, kind_name = kind.split()
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    manifest = Manifest({"apiVersion": api_version, "kind": kind_name, "metadata": metadata})
    return Desired(manifest, None, content, wave, tier(manifest.key.group, manifest.key.kind), create_only)


def prepared(*objects: Desired, problems: Sequence[Problem] = (), **rest: Any) -> Prepared:
    """All that a unit wants."""
    ordered = sorted(objects, key=lambda each: sort_key(each.wave, each.key))
    return Prepared(tuple(ordered), tuple(problems), digest([(each.key, each.digest) for each in ordered]), **rest)


def record(name: str, wave: int = 0, kind: str = "v1 ConfigMap", namespace: str = "", **facts: Any) -> Record:
    """A live object of the unit, as our last apply left it but for the facts given."""
    as_left = {"uid": f"uid of {name}", "version": 1, "entry": 7, "expected": 7, "manifest": "d1"}
    return Record(
        key(name, kind, namespace), UNIT.id, wave=wave, **{**as_left, "readiness": Readiness.CURRENT, **facts}
    )


def missing(name: str, **facts: Any) -> Record:
    """An object of the unit that isn't there."""
    return record(name, **{"uid": "", "version": 0, "entry": 0, "readiness": Readiness.MISSING, **facts})


def applied(objects: Iterable[Desired], **facts: Any) -> dict[ObjectKey, Record]:
    """The records of these objects, right after they were applied."""
    return {
        each.key: Record(
            each.key, UNIT.id, f"uid of {each.key}", 1, 7, 7, each.digest,
            **{"readiness": Readiness.CURRENT, "wave": each.wave, **facts},
        )
        for each in objects
    }  # fmt: skip


def snapshot(*records: Record, **rest: Any) -> Snapshot:
    """What is known of the unit."""
    return Snapshot({each.key: each for each in records}, **rest)


def operation(of: Prepared, phase: Phase = Phase.SUCCEEDED, wave: int | None = None) -> Operation:
    """The operation that brings what is prepared."""
    return Operation(digest=of.digest, phase=phase, wave=wave, started_at=datetime(2026, 1, 1, tzinfo=UTC))


def told(plan: Plan) -> list[str]:
    """A plan in short: actions with names, and waits with what is awaited."""
    return [_told(task) for task in plan.tasks]


def _told(task: Task) -> str:
    if task.action is Action.WAIT:
        return f"wait {','.join(each.name for each in task.awaited)}"
    assert task.key is not None
    return f"{task.action} {task.key.name}"


WAVES = st.integers(-2, 2)
OBJECTS = st.lists(
    st.builds(desired, st.text("abcdef", min_size=1, max_size=3), WAVES, st.sampled_from(KINDS)),
    unique_by=lambda each: each.key,
    max_size=12,
)
RECORDS = st.lists(
    st.builds(record, st.text("uvwxyz", min_size=1, max_size=3), WAVES, st.sampled_from(KINDS)),
    unique_by=lambda each: each.key,
    max_size=8,
)
