"""A Sync that names a Cluster: which unit it is, what keeps it from there, and when its deletion waits no more."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from starling.api import Cluster, Sync
from starling.controllers.sync_removal import Absences, abandoned, left_there
from starling.controllers.sync_units import HERE, Surroundings, SyncSettings, place_of, unit_id, unit_of, variables
from starling.errors import InputError
from starling.fleet import BindingError
from starling.runtime import Key
from tests.unit.test_workqueue import START, VirtualClock

API = "starling.dev/v1alpha1"
UNIT = "prod/team/Sync.web@eu-1"
NOW = START
TRIED = {"observedGeneration": 3, "operation": {"digest": "d", "startedAt": NOW}}
PUSH: dict[str, Any] = {"push": {"kubeconfigSecret": {"name": "k"}}}


def sync(status: dict[str, Any] | None = None, *, deleting: bool = False, owned: bool = False, **spec: Any) -> Sync:
    """A Sync of generation 3 that goes to eu-1."""
    metadata: dict[str, Any] = {"name": "web", "namespace": "team", "generation": 3}
    if deleting:
        metadata["deletionTimestamp"] = NOW
    if owned:
        owner = {"apiVersion": API, "kind": "Assemblage", "name": "prod", "uid": "u", "controller": True}
        metadata["ownerReferences"] = [owner]
    git = {"git": {"url": "https://git.example/x", "commit": "1" * 40}}
    wanted = {"source": git, "cluster": {"name": "eu-1"}, **spec}
    document = {"apiVersion": API, "kind": "Sync", "metadata": metadata, "spec": wanted, "status": status or {}}
    return msgspec.convert(document, Sync)


def cluster(*, deleting: bool = False, **spec: Any) -> Cluster:
    """The Cluster eu-1."""
    metadata: dict[str, Any] = {"name": "eu-1", "namespace": "team", "labels": {"region": "eu"}}
    if deleting:
        metadata["deletionTimestamp"] = NOW
    return msgspec.convert({"apiVersion": API, "kind": "Cluster", "metadata": metadata, "spec": spec or PUSH}, Cluster)


def there(mode: str = "Active", **more: Any) -> Surroundings:
    """What is around a Sync whose cluster is there, in that mode."""
    return Surroundings(cluster=cluster(**PUSH, mode=mode), **more)


def test_a_unit_is_named_after_its_cluster() -> None:
    """The id has the cluster's name, and the engine tells clusters of two namespaces apart, and none from our own."""
    assert unit_id(sync(), None, SyncSettings(instance="prod")) == UNIT
    assert unit_of(sync(), UNIT, there()).cluster == "team/eu-1"
    assert place_of(None) == HERE
    assert place_of(Key("team", HERE)) != HERE


def test_an_assemblage_s_sync_stays_where_it_is() -> None:
    """One that names a Cluster all the same is refused, be its Assemblage there or not."""
    with pytest.raises(InputError, match="is an Assemblage's"):
        unit_id(sync(owned=True), None, SyncSettings())


CORDONED = "the cluster is cordoned: what is new here waits until it isn't, and drift with it"
AWAY = "Cluster team/eu-1 dials in, and the hub can't connect to it: a Module gets there"


@pytest.mark.parametrize(
    ("made", "around", "held"),
    [
        pytest.param(sync(), there(), "", id="free"),
        pytest.param(sync(suspend=True), there(), "suspended", id="suspended"),
        pytest.param(sync(), Surroundings(), "there is no Cluster team/eu-1", id="no cluster"),
        pytest.param(sync(), Surroundings(cluster=cluster(pull={})), AWAY, id="pull"),
        pytest.param(
            sync(), Surroundings(cluster=cluster(deleting=True)), "Cluster team/eu-1 is being deleted", id="leaving"
        ),
        pytest.param(sync(TRIED), there("Frozen"), "the cluster is frozen", id="frozen"),
        pytest.param(sync(TRIED, deleting=True), there("Frozen"), "the cluster is frozen", id="frozen and deleted"),
        pytest.param(sync(deleting=True), there("Frozen", terminating=True), "", id="frozen, its namespace goes"),
        pytest.param(sync(), there("Cordoned"), CORDONED, id="cordoned and new"),
        pytest.param(sync(TRIED), there("Cordoned"), "", id="cordoned and as it was"),
        pytest.param(sync({**TRIED, "observedGeneration": 2}), there("Cordoned"), CORDONED, id="cordoned and changed"),
        pytest.param(sync(deleting=True), there("Cordoned"), "", id="cordoned and deleted"),
    ],
)
def test_what_keeps_a_sync_from_its_cluster(made: Sync, around: Surroundings, held: str) -> None:
    """A Cluster that isn't there, isn't the hub's to reach, or is left alone holds a Sync."""
    assert unit_of(made, UNIT, around).held == held


def test_bindings_are_resolved_with_the_cluster() -> None:
    """They reach its labels and one another, CLUSTER_NAME is there, and what isn't there is told."""
    region = {"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}
    made = sync(bindings=[region, {"name": "HOST", "value": "$(CLUSTER_NAME).$(REGION)"}])
    assert variables(made, there()) == {"CLUSTER_NAME": "eu-1", "REGION": "eu", "HOST": "eu-1.eu"}
    with pytest.raises(BindingError, match="no field /metadata/labels/zone"):
        variables(sync(bindings=[{"name": "Z", "objectFieldRef": {"fieldPath": "/metadata/labels/zone"}}]), there())


@pytest.mark.parametrize(
    ("made", "where", "until", "why"),
    [
        pytest.param(sync(), None, None, "", id="not deleted"),
        pytest.param(sync(deleting=True), cluster(), None, "", id="in sight"),
        pytest.param(sync(deleting=True), cluster(), NOW + timedelta(seconds=1), "", id="waited for"),
        pytest.param(sync(deleting=True), cluster(), NOW, "Cluster team/eu-1 can't be reached", id="given up"),
        pytest.param(sync(deleting=True), None, None, "Cluster team/eu-1 is gone", id="gone"),
        pytest.param(
            sync(deleting=True), cluster(deleting=True), None, "Cluster team/eu-1 is being deleted", id="let go"
        ),
    ],
)
def test_when_a_deletion_waits_no_more(made: Sync, where: Cluster | None, until: datetime | None, why: str) -> None:
    """A Cluster that is removed lets go at once, one that is only away after a time."""
    assert abandoned(made, where, until, NOW) == why


def test_the_wait_is_counted_from_when_it_was_both_deleted_and_away() -> None:
    """An absence before the deletion doesn't count, nor does one that has ended."""
    clock = VirtualClock()
    absences, deleted = Absences(600, clock), sync(deleting=True)
    clock.time = -3600
    absences.saw(UNIT, out_of_sight=True)
    assert absences.until(UNIT, sync()) is None
    assert absences.until(UNIT, deleted) == NOW + timedelta(seconds=600)
    absences.saw(UNIT, out_of_sight=False)
    assert absences.until(UNIT, deleted) is None
    clock.time = 599
    absences.saw(UNIT, out_of_sight=True)
    clock.time = 700
    absences.saw(UNIT, out_of_sight=True)
    assert absences.until(UNIT, deleted) == NOW + timedelta(seconds=599 + 600)


def test_what_may_be_left_is_named() -> None:
    """The first ten objects by name, and how many more; a record that can't be read is counted."""
    packed = [f"/ConfigMap/team/c{at:02}" for at in range(12)]
    told = left_there(sync({"inventory": packed}))
    assert told.startswith("ConfigMap team/c00, ")
    assert told.endswith("ConfigMap team/c09 and 2 more")
    assert left_there(sync({"inventory": ["?"]})) == "1 objects"
