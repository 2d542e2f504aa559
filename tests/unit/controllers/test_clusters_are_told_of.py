"""What the hub says of a cluster, and which labels a cluster may choose."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from starling.api import Cluster, ObjectMeta
from starling.api.v1alpha1 import ClusterSpec, ClusterStatus, LocalSecretReference, Pull, Push
from starling.controllers.cluster import chosen_labels, status_of
from starling.controllers.presence import Seen

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PUSH = ClusterSpec(push=Push(kubeconfig_secret=LocalSecretReference(name="it")))
PULL = ClusterSpec(pull=Pull(allowed_labels=("zone",)))


def cluster(spec: ClusterSpec = PULL, status: ClusterStatus | None = None, **labels: str) -> Cluster:
    """A Cluster at its first generation."""
    meta = ObjectMeta(name="it", namespace="n", generation=1, labels=labels)
    return Cluster(metadata=meta, spec=spec, status=status or ClusterStatus())


def told(before: Cluster, seen: Seen | None, now: datetime = NOW) -> Cluster:
    """The Cluster after the hub has said how it is."""
    return msgspec.structs.replace(before, status=status_of(before, seen, now))


def test_who_was_never_seen_stays_pending() -> None:
    """A cluster that nobody has heard of is Pending, and not Ready."""
    status = told(cluster(), None).status
    assert status.phase == "Pending"
    assert [each.status for each in status.conditions if each.type == "Ready"] == ["False"]


def test_a_hub_that_has_just_started_believes_what_is_written() -> None:
    """What was Ready stays so until this process has seen otherwise."""
    ready = told(cluster(), Seen(reachable=True, last_seen=NOW))
    assert status_of(ready, None, NOW) == ready.status
    assert status_of(ready, Seen(), NOW) == ready.status


def test_status_changes_with_the_phase_alone() -> None:
    """Being seen again and again, or lost for another reason than before, isn't written down."""
    ready = told(cluster(), Seen(reachable=True, last_seen=NOW))
    later = Seen(reachable=True, last_seen=NOW + timedelta(hours=1))
    assert status_of(ready, later, NOW + timedelta(hours=1)) == ready.status
    lost = told(ready, Seen(reachable=False, last_seen=NOW, why="no heartbeat"))
    assert (lost.status.phase, lost.status.last_seen) == ("Unreachable", NOW)
    assert lost.status.conditions[0].message == "no heartbeat"
    assert status_of(lost, Seen(reachable=False, last_seen=NOW, why="another"), NOW) == lost.status


@pytest.mark.parametrize(("spec", "uid"), [(PUSH, "found"), (PULL, "")], ids=["push", "pull"])
def test_the_hub_says_what_it_found_out_itself(spec: ClusterSpec, uid: str) -> None:
    """Of a push cluster it tells uid and versions; those of a pull cluster are the cluster's own to tell."""
    status = ClusterStatus(requested_labels={"zone": "a"}) if spec is PULL else ClusterStatus()
    seen = Seen(reachable=True, last_seen=NOW, uid="found", kubernetes_version="v1.36.0", agent_version="1")
    after = told(cluster(spec, status), seen).status
    assert (after.uid, bool(after.kubernetes_version), bool(after.agent_version)) == (uid, bool(uid), bool(uid))
    assert after.requested_labels == {}


def test_a_cluster_chooses_only_the_labels_that_it_may() -> None:
    """Of what it asks for it gets those keys that are allowed, where they differ."""
    asks = ClusterStatus(requested_labels={"zone": "a", "ring": "canary"})
    assert chosen_labels(cluster(PULL, asks, ring="stable")) == {"zone": "a"}
    assert chosen_labels(cluster(PULL, asks, zone="a")) == {}
    assert chosen_labels(cluster(PUSH, asks)) == {}
