"""Generates objects for health tests: of every kind that has rules, nearly ready, in part malformed."""

import functools
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from starling.engine.health.kstatus_kinds import KINDS

__all__ = ["GENERIC", "anything", "mangled_objects", "objects"]

GENERIC: Final = [
    ("x.dev", "X"),
    ("apiregistration.k8s.io", "APIService"),
    ("", "Node"),
    ("apps", "Pod"),
    ("a/b", "Pod"),
]
"""Kinds without rules of their own, as group and kind."""

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31 - 1, 2**61, 2**63, -(2**63) - 1, 0.0, 1.0, 1.5, 1e300, "", "1"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
"""Any JSON value; no numbers so large that Go overflows when it subtracts them."""

_COUNTS: Final[Mapping[str, list[str]]] = {
    "Deployment": ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
    "ReplicaSet": ["replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"],
    "StatefulSet": ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"],
    "DaemonSet": [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    ],
    "Job": ["succeeded", "active", "failed"],
}
_CONDITIONS: Final[Mapping[str, list[str]]] = {
    "Deployment": ["Progressing", "Available"],
    "ReplicaSet": ["ReplicaFailure"],
    "Job": ["Complete", "Failed", "Suspended"],
    "Pod": ["PodScheduled", "Ready"],
    "CustomResourceDefinition": ["NamesAccepted", "Established"],
}
_REASONS: Final = ["NewReplicaSetAvailable", "ProgressDeadlineExceeded", "Unschedulable", "Installing", "Other"]
_TIMES: Final = ["2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2999-01-01T00:00:00.5+02:00", "2999-01-01", "", "x"]

_Fields = dict[str, st.SearchStrategy[Any]]

_some = st.sampled_from
_message = st.text(max_size=8)


def _filled(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with all or only some of these fields."""
    return st.fixed_dictionaries(fields) | st.fixed_dictionaries({}, optional=fields)


@functools.cache
def _conditions(kind: str) -> st.SearchStrategy[list[Any]]:
    types = [*_CONDITIONS.get(kind, []) * 4, "Ready", "Reconciling", "Stalled", "Odd"]
    statuses = _some(["True", "True", "False", "Unknown", "odd"])
    return st.lists(_filled(type=_some(types), status=statuses, reason=_some(_REASONS), message=_message), max_size=4)


@functools.cache
def _container() -> st.SearchStrategy[dict[str, Any]]:
    waiting = _filled(reason=_some(["CrashLoopBackOff", "ContainerCreating"]))
    return _filled(name=_message, state=_filled(waiting=waiting, running=st.just({})))


@functools.cache
def _status(kind: str, generation: int, wanted: int) -> st.SearchStrategy[dict[str, Any]]:
    by_kind: dict[str, _Fields] = {
        "Pod": {
            "phase": _some(["Pending", "Pending", "Running", "Running", "Succeeded", "Failed", "", "Odd"]),
            "containerStatuses": st.lists(_container(), max_size=3),
        },
        "PersistentVolumeClaim": {"phase": _some(["Bound", "Pending", ""])},
        "StatefulSet": dict.fromkeys(("currentRevision", "updateRevision"), _some(["a", "a", "b"])),
        "Job": {"startTime": _some(["2001-01-01T00:00:00Z", ""])},
    }
    return _filled(
        observedGeneration=_some([generation, generation, generation, 1]),
        conditions=_conditions(kind),
        **by_kind.get(kind, {}),
        **dict.fromkeys(_COUNTS.get(kind, ()), _some([wanted, wanted, wanted, wanted, wanted + 1, 0])),
    )


@functools.cache
def _spec(kind: str, wanted: int) -> st.SearchStrategy[dict[str, Any]]:
    replicas: _Fields = {"replicas": st.just(wanted)}
    strategies = _filled(
        type=_some(["RollingUpdate", "RollingUpdate", "OnDelete"]),
        rollingUpdate=_filled(partition=_some([-1, 0, 1])),
    )
    by_kind: dict[str, _Fields] = {
        "Deployment": {**replicas, "progressDeadlineSeconds": _some([600, 600, 2**31 - 1])},
        "ReplicaSet": replicas,
        "StatefulSet": {**replicas, "updateStrategy": st.just({}) | strategies},
        "Job": {"parallelism": st.just(wanted), "completions": st.just(wanted + 1), "suspend": st.booleans()},
        "Service": {"type": _some(["ClusterIP", "LoadBalancer"]), "clusterIP": _some(["", "10.0.0.1"])},
    }
    return _filled(**by_kind.get(kind, {}))


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """A well-formed object of a kind that has rules or of one that has none, in some state."""
    group, kind = draw(_some([*KINDS, *GENERIC]))
    generation, wanted = draw(st.tuples(st.integers(1, 3), st.integers(0, 3)))
    metadata = {"name": "it", "creationTimestamp": draw(_some(_TIMES)), "generation": generation}
    left_out = draw(_some(["", "", "", "", "generation", "creationTimestamp"]))
    metadata.pop(left_out, None)
    if draw(_some([False] * 9 + [True])):
        metadata["deletionTimestamp"] = draw(_some(["2001-01-01T00:00:00Z", ""]))
    return {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": metadata,
        "spec": draw(_spec(kind, wanted)),
        "status": draw(_status(kind, generation, wanted)),
    }


@st.composite
def mangled_objects(draw: st.DrawFn) -> dict[str, Any]:
    """An object in which up to three places hold something else."""
    obj = draw(objects())
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(_some(_places(obj)))
        parent[key] = draw(anything)
    return obj


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value, as the list or mapping it is in and the key there."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]
