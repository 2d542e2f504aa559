"""The way that versions took through a fleet, by the hub's audit log, which knows of every moment in between."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tests.e2e.fleets import in_motion

__all__ = ["Step", "Trail"]


class Step(NamedTuple):
    """A cluster was given a target, or has said that it succeeded, or failed, there."""

    at: datetime
    what: str
    cluster: str
    target: str


class Trail:
    """All steps of one Module, in their order."""

    def __init__(self, events: Sequence[Mapping[str, Any]], module: str) -> None:
        self._module = module
        self._events = [each for each in events if _is_write(each)]
        self.steps = _steps(self._events, module)

    def targets(self, *without: str) -> set[str]:
        """All that was given to someone, but for these."""
        return {each.target for each in self.steps} - set(without)

    def given(self, target: str) -> list[str]:
        """The clusters that were given a target, in the order in which they were, each time it happened."""
        return [each.cluster for each in self.steps if each[1::2] == ("given", target)]

    def between(self, target: str, earlier: Collection[str], later: Collection[str]) -> float:
        """Seconds from when all of the earlier clusters were well with a target until one of the later was given it.

        Negative if that came first.
        """
        well = {
            cluster: min(each.at for each in self.steps if each[1:] == ("succeeded", cluster, target))
            for cluster in earlier
        }
        first = min(each.at for each in self.steps if each[1::2] == ("given", target) and each.cluster in later)
        return (first - max(well.values())).total_seconds()

    def out_of_turn(self, stages: Sequence[Collection[str]], *targets: str) -> list[Step]:
        """The steps by which a cluster was given a target before all clusters of an earlier stage were well with it."""
        well: set[tuple[str, str]] = set()
        found = []
        for step in self.steps:
            if step.what == "succeeded":
                well.add((step.cluster, step.target))
            elif step.what == "given" and step.target in targets:
                number = next(number for number, stage in enumerate(stages) if step.cluster in stage)
                before = [cluster for stage in stages[:number] for cluster in stage]
                found += [step] if any((cluster, step.target) not in well for cluster in before) else []
        return found

    def most_in_motion(self, clusters: Collection[str], *targets: str) -> int:
        """The most of these clusters that were on their way at once since someone was given one of the targets."""
        start = next(each.at for each in self.steps if each.target in targets)
        own = [each for each in self._events if each["objectRef"]["name"] in clusters and _at(each) >= start]
        return in_motion(own, self._module)


def _is_write(event: Mapping[str, Any]) -> bool:
    proxies = event.get("objectRef", {}).get("resource") == "proxyassemblages"
    return proxies and event["verb"] == "patch" and "spec" in (event.get("responseObject") or {})


def _at(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["requestReceivedTimestamp"])


def _steps(events: Sequence[Mapping[str, Any]], module: str) -> list[Step]:
    given: dict[str, str] = {}
    told: dict[str, tuple[str, str]] = {}
    steps = []
    for event in events:
        cluster, written = event["objectRef"]["name"], event["responseObject"]
        status = written.get("status", {})
        target = next((each["target"] for each in written["spec"].get("syncs", []) if each["name"] == module), "")
        says: Mapping[str, str] = next((each for each in status.get("syncs", []) if each["name"] == module), {})
        if target and target != given.get(cluster):
            steps.append(Step(_at(event), "given", cluster, target))
            told.pop(cluster, None)
        given[cluster] = target
        observed = status.get("observed", 0) >= written["metadata"]["generation"]
        state = says.get("state", "")
        if observed and says.get("target") == target and state in ("succeeded", "failed"):
            if told.get(cluster) != (target, state):
                steps.append(Step(_at(event), state, cluster, target))
            told[cluster] = (target, state)
    return steps
