"""The planner alone: one decision about 10,000 clusters in four stages, with as many on their way as there may be.

Try it small: STARLING_BENCH_PLANNED=2000.
"""

import statistics
import time
from datetime import UTC, datetime

from benchmarks.fleet_hub import number
from benchmarks.rows import Row
from starling.api.v1alpha1 import Admitted, LabelSelector, Rollout, RolloutStage
from starling.fleet import Course, Facts, Member, decide
from starling.kube import Client, Resource, kubeconfig
from starling.local import LocalCluster

CLUSTERS = number("PLANNED", 10_000)
TURNS = 9
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


async def measure(cluster: LocalCluster) -> list[Row]:
    """Seconds for a decision, and how many of the API server's writes that is."""
    policy, facts, members = _policy(), _facts(), [_member(each) for each in range(CLUSTERS)]
    decisions, writes = [], []
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        for turn in range(TURNS):
            began = time.perf_counter()
            decision = decide(policy, facts, members, NOW)
            decisions.append(time.perf_counter() - began)
            assert len(decision.admitted) == len(facts.admitted) == 200
            began = time.perf_counter()
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"turn": str(turn)}}
            await client.apply(CONFIG_MAPS.ref("it", "default"), body)
            writes.append(time.perf_counter() - began)
    took, write = statistics.median(decisions), statistics.median(writes)
    return [
        Row(f"a decision about {CLUSTERS} clusters", f"{took * 1000:.0f} ms"),
        Row("the same, in writes to the API server", f"{took / write:.1f}"),
    ]


def _policy() -> Rollout:
    def stage(name: str, label: str) -> RolloutStage:
        return RolloutStage(name=name, selector=LabelSelector(match_labels={label: name}))

    return Rollout(stages=(stage("canary", "ring"), stage("eu", "region"), stage("us", "region")), max_concurrent="10%")


def _facts() -> Facts:
    eu = [each for each in range(CLUSTERS) if each % 3 == 0 and each % 50][:200]
    admitted = tuple(Admitted(cluster=f"c{each:05}", since=NOW, target="t1:new", admission=6) for each in eu)
    course = Course(last_good="t1:old", stage="eu", stages_done=("canary",), stage_started=NOW)
    return Facts(target="t1:new", previous="t1:new", course=course, admission=6, admitted=admitted)


def _member(which: int) -> Member:
    canary = which % 50 == 0
    at = "t1:new" if canary else "t1:old"
    return Member(
        name=f"c{which:05}",
        selected=True,
        labels={"ring": "canary" if canary else "main", "region": ("eu", "us", "ap")[which % 3]},
        entry=at,
        admission=3,
        reported=at,
        state="succeeded",
        acknowledged=True,
        listed=True,
        reachable=True,
        adopted=True,
        mode="Active",
    )
