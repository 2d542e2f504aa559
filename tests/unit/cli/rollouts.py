"""Rollouts in a state, for tests."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from starling.api import Cluster, Module, ObjectMeta, conditions
from starling.api.v1alpha1 import LabelSelector, ModuleStatus, Rollout, RolloutGate, RolloutStage
from starling.cli.courses import Seen
from starling.cli.fleet import Fleet
from starling.cli.rollouts import Past, Which, meant
from tests.unit.cli.fleets import NEW, OLD, cluster, entry, module, proxy, status

__all__ = ["HISTORY", "NOW", "POLICY", "T1", "T2", "WEB", "rolled", "seen"]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
T1, T2 = "t1:" + "1" * 64, "t1:" + "2" * 64
HISTORY = [
    Past(3, T2, f"v1.2.0@sha1:{NEW}", NOW),
    Past(2, T1, f"v1.1.0@sha1:{OLD}", NOW),
    Past(1, "t1:" + "3" * 64, f"v1.0.0@sha1:{'c' * 40}", NOW),
]
POLICY = Rollout(
    stages=(
        RolloutStage(name="canary", selector=LabelSelector(match_labels={"ring": "canary"}), bake="10m"),
        RolloutStage(
            name="eu",
            selector=LabelSelector(match_labels={"region": "eu"}),
            approval="Manual",
            gate=RolloutGate(url="https://gate.example"),
        ),
    )
)
WEB: Which = meant("web", "n")


def rolled(**said: Any) -> Module:
    """A Module on its way from the first target to the second, with this said in its status."""
    status = {
        "observed_generation": 3,
        "target": T2,
        "revision": f"v1.2.0@sha1:{NEW}",
        "last_good": T1,
        "phase": "Progressing",
        "conditions": conditions.reconciling((), 3, NOW, "1 of 3 clusters\nare at the target"),
    }
    return msgspec.structs.replace(
        module("web"),
        metadata=ObjectMeta(name="web", namespace="n", generation=3),
        status=ModuleStatus(**{**status, **said}),
    )


def seen(about: Module, policy: Rollout = POLICY) -> Seen:
    """The rollout with a cluster in each stage: one is there, one has failed, one's turn is to come."""
    at = {"target": T2}
    clusters: list[Cluster] = [cluster("a", {"ring": "canary"}), cluster("b", {"region": "eu"}), cluster("c")]
    proxies = [
        proxy("a", msgspec.structs.replace(entry("web"), **at), status("web", **at)),
        proxy(
            "b", msgspec.structs.replace(entry("web"), **at), status("web", state="failed", message="no image", **at)
        ),
        proxy(
            "c", msgspec.structs.replace(entry("web", "v1.1.0"), target=T1), status("web", applied="v1.1.0", target=T1)
        ),
    ]
    fleet = Fleet.of(clusters, [about], proxies)
    return Seen(WEB, about, policy, fleet.of_rolled(about), HISTORY, {each.metadata.name: each for each in clusters})
