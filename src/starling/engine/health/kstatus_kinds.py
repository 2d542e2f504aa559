"""kstatus's rules for the built-in kinds, each a function of a Subject that has passed the general ones."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from starling.engine.health.readiness import Health, Readiness
from starling.engine.health.subject import Malformed, Subject, mapping, must_be, text, whole

__all__ = ["KINDS", "SCHEDULE_WINDOW", "current", "failed", "in_progress"]

SCHEDULE_WINDOW: Final = timedelta(seconds=15)
"""How long a pod that nothing can schedule counts as in progress, from its creation."""

_NO_DEADLINE: Final = 2**31 - 1
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def current(message: str) -> Health:
    """Health of an object that is as it should be."""
    return Health(Readiness.CURRENT, message)


def in_progress(message: str) -> Health:
    """Health of an object that isn't there yet."""
    return Health(Readiness.IN_PROGRESS, message)


def failed(message: str) -> Health:
    """Health of an object that won't get there by itself."""
    return Health(Readiness.FAILED, message)


def _fewer(*counts: tuple[str, int, int]) -> Health | None:
    """InProgress by the first count, (name, there, wanted), that isn't reached."""
    for name, there, wanted in counts:
        if wanted > there:
            return in_progress(f"{name}: {there}/{wanted}")
    return None


def _more(there: int, wanted: int) -> Health | None:
    return in_progress(f"Pending termination: {there - wanted}") if there > wanted else None


def _deployment(it: Subject) -> Health:
    rolled_out = whole(it.spec, "progressDeadlineSeconds", _NO_DEADLINE) == _NO_DEADLINE
    available = False
    for condition in it.conditions:
        if condition.type == "Progressing":
            if condition.reason == "ProgressDeadlineExceeded":
                return failed("Progress deadline exceeded")
            rolled_out |= condition.holds and condition.reason == "NewReplicaSetAvailable"
        elif condition.type == "Available":
            available |= condition.holds
    if counted := _deployment_counts(it):
        return counted
    if not rolled_out:
        return in_progress("ReplicaSet not Available")
    if not available:
        return in_progress("Deployment not Available")
    return current(f"Deployment is available. Replicas: {whole(it.status, 'replicas')}")


def _deployment_counts(it: Subject) -> Health | None:
    wanted, there = whole(it.spec, "replicas", 1), whole(it.status, "replicas")
    updated = whole(it.status, "updatedReplicas")
    return (
        _fewer(("Replicas", there, wanted), ("Updated", updated, wanted))
        or _more(there, wanted)
        or _fewer(
            ("Available", whole(it.status, "availableReplicas"), updated),
            ("Ready", whole(it.status, "readyReplicas"), wanted),
        )
    )


def _replica_set(it: Subject) -> Health:
    if any(condition.type == "ReplicaFailure" and condition.holds for condition in it.conditions):
        return in_progress("Replica Failure condition. Check Pods")
    wanted, there = whole(it.spec, "replicas", 1), whole(it.status, "replicas")
    return (
        _fewer(
            ("Labelled", whole(it.status, "fullyLabeledReplicas"), wanted),
            ("Available", whole(it.status, "availableReplicas"), wanted),
            ("Ready", whole(it.status, "readyReplicas"), wanted),
        )
        or _more(there, wanted)
        or current(f"ReplicaSet is available. Replicas: {there}")
    )


def _stateful_set(it: Subject) -> Health:
    strategy = mapping(it.spec, "updateStrategy")
    if text(strategy, "type") == "OnDelete":
        return current("StatefulSet is using the ondelete update strategy")
    wanted, there = whole(it.spec, "replicas", 1), whole(it.status, "replicas")
    short = _fewer(("Replicas", there, wanted), ("Ready", whole(it.status, "readyReplicas"), wanted))
    if counted := short or _more(there, wanted):
        return counted
    partition = whole(mapping(strategy, "rollingUpdate"), "partition", -1)
    if partition != -1:
        updated = whole(it.status, "updatedReplicas")
        complete = current(f"Partition rollout complete. updated: {updated}")
        return _fewer(("updated", updated, wanted - partition)) or complete
    if short := _fewer(("current", whole(it.status, "currentReplicas"), wanted)):
        return short
    if text(it.status, "currentRevision") != text(it.status, "updateRevision"):
        return in_progress("Waiting for updated revision to match current")
    return current(f"All replicas scheduled as expected. Replicas: {there}")


def _daemon_set(it: Subject) -> Health:
    if "generation" not in it.metadata:
        return in_progress(f"{it.kind} metadata.generation not found")
    if "observedGeneration" not in it.status:
        return in_progress(f"{it.kind} status.observedGeneration not found")
    wanted = whole(it.status, "desiredNumberScheduled", -1)
    if wanted == -1:
        return in_progress("Missing .status.desiredNumberScheduled")
    return _fewer(
        ("Current", whole(it.status, "currentNumberScheduled"), wanted),
        ("Updated", whole(it.status, "updatedNumberScheduled"), wanted),
        ("Available", whole(it.status, "numberAvailable"), wanted),
        ("Ready", whole(it.status, "numberReady"), wanted),
    ) or current(f"All replicas scheduled as expected. Replicas: {wanted}")


def _job(it: Subject) -> Health:
    completions = whole(it.spec, "completions", whole(it.spec, "parallelism", 1))
    succeeded, failures = whole(it.status, "succeeded"), whole(it.status, "failed")
    for condition in it.conditions:
        if condition.type == "Complete" and condition.holds:
            return current(f"Job Completed. succeeded: {succeeded}/{completions}")
        if condition.type == "Failed" and condition.holds:
            return failed(f"Job Failed. failed: {failures}/{completions}")
    if not text(it.status, "startTime"):
        return in_progress("Job not started")
    active = whole(it.status, "active")
    return current(f"Job in progress. success:{succeeded}, active: {active}, failed: {failures}")


def _pod(it: Subject) -> Health:
    match phase := text(it.status, "phase"):
        case "Succeeded":
            return current("Pod has completed successfully")
        case "Failed":
            return current("Pod has completed, but not successfully")
        case "Running":
            return _running_pod(it)
        case "Pending":
            return _pending_pod(it)
        case "":
            return in_progress("Pod phase not available")
        case _:
            raise Malformed(f"unknown phase {phase}")


def _running_pod(it: Subject) -> Health:
    if any(condition.type == "Ready" and condition.holds for condition in it.conditions):
        return current("Pod is Ready")
    if crashing := _crash_looping(it.status):
        return failed(f"Containers in CrashLoop state: {','.join(crashing)}")
    return in_progress("Pod is running but is not Ready")


def _crash_looping(status: Mapping[str, Any]) -> list[str]:
    """The names of containers that are started again and again; Malformed if the statuses can't be what they are."""
    path = "status.containerStatuses"
    names = []
    for number, found in enumerate(must_be(list, status.get("containerStatuses", []), path)):
        where = f"{path}[{number}]"
        container = must_be(dict, found, where)
        if "name" not in container:
            continue
        name = must_be(str, container["name"], f"{where}.name")
        state = must_be(dict, container.get("state", {}), f"{where}.state")
        waiting = must_be(dict, state.get("waiting", {}), f"{where}.state.waiting")
        if must_be(str, waiting.get("reason", ""), f"{where}.state.waiting.reason") == "CrashLoopBackOff":
            names.append(name)
    return names


def _pending_pod(it: Subject) -> Health:
    scheduled = (one for one in it.conditions if one.type == "PodScheduled" and one.status == "False")
    first = next(scheduled, None)
    if first is None or first.reason != "Unschedulable":
        return in_progress("Pod is in the Pending phase")
    created = _time(text(it.metadata, "creationTimestamp"))
    if created is not None and it.now - SCHEDULE_WINDOW < created:
        return in_progress("Pod has not been scheduled")
    return failed("Pod could not be scheduled")


def _time(written: str) -> datetime | None:
    """A time as API servers write them, None if it isn't one (Go also takes hours of one digit)."""
    try:
        return datetime.fromisoformat(written) if _RFC3339.fullmatch(written) else None
    except ValueError:
        return None


def _claim(it: Subject) -> Health:
    phase = text(it.status, "phase", "unknown")
    return current("PVC is Bound") if phase == "Bound" else in_progress(f"PVC is not Bound. phase: {phase}")


def _service(it: Subject) -> Health:
    if text(it.spec, "type") == "LoadBalancer" and not text(it.spec, "clusterIP"):
        return in_progress("ClusterIP not set. Service type: LoadBalancer")
    return current("Service is ready")


def _definition(it: Subject) -> Health:
    for condition in it.conditions:
        if condition.type == "NamesAccepted" and condition.status == "False":
            return failed(condition.message)
        if condition.type == "Established":
            if condition.holds:
                return current("CRD is established")
            if condition.status == "False" and condition.reason != "Installing":
                return failed(condition.message)
    return in_progress("Install in progress")


def _budget(_: Subject) -> Health:
    return current("AllowedDisruptions has been computed.")


def _always(_: Subject) -> Health:
    return current("Resource is always ready")


KINDS: Final[Mapping[tuple[str, str], Callable[[Subject], Health]]] = {
    ("", "ConfigMap"): _always,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Secret"): _always,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _always,
    ("batch", "Job"): _job,
    ("extensions", "DaemonSet"): _daemon_set,
    ("extensions", "Deployment"): _deployment,
    ("extensions", "ReplicaSet"): _replica_set,
    ("policy", "PodDisruptionBudget"): _budget,
}
"""By group and kind; every version of a kind goes by the same rules."""
