"""What an Assemblage becomes: the hub's word once it is adopted, and only additions until then."""

import pytest
from msgspec.structs import replace

from starling.api import Assemblage, ObjectMeta
from starling.api.v1alpha1 import AssemblageSpec, AssemblageStatus, EntryStatus, ProxyAssemblageStatus
from starling.fleet import local_spec, report
from tests.unit.fleet.simulated import entry

OLD, NEW, MORE = entry("app", "t1:old"), entry("app", "t1:new"), entry("more", "t1:more")
MINE = entry("mine", "t1:mine")
UNADOPTED = AssemblageSpec(instance="fleet", mode="Cordoned", syncs=(NEW, MORE))
ADOPTED = replace(UNADOPTED, adopted="uid-1")
TOLD = (EntryStatus(name="app", target="t1:old", state="succeeded"),)
LOCAL = Assemblage(
    metadata=ObjectMeta(name="fleet", uid="uid-1", generation=3),
    spec=AssemblageSpec(instance="fleet", syncs=(OLD, MINE)),
    status=AssemblageStatus(observed_generation=3, syncs=TOLD),
)
NOTHING = ProxyAssemblageStatus()


def test_a_new_cluster_gets_all() -> None:
    """Where there is no Assemblage, it is made as the hub says."""
    assert local_spec(UNADOPTED, None) == UNADOPTED


def test_an_adopted_one_is_what_the_hub_says() -> None:
    """Entries that the hub no longer has go, and others change."""
    assert local_spec(ADOPTED, LOCAL) == ADOPTED


@pytest.mark.parametrize("adopted", ["", "uid-0"], ids=["never", "another"])
def test_until_then_entries_are_only_added(adopted: str) -> None:
    """Nothing is removed or changed on a cluster whose entries the hub doesn't know; what it says besides holds."""
    proxy = replace(UNADOPTED, adopted=adopted)
    assert local_spec(proxy, LOCAL) == replace(proxy, syncs=(OLD, MINE, MORE))
    assert local_spec(replace(proxy, syncs=()), LOCAL).syncs == LOCAL.spec.syncs


def test_an_assemblage_without_uid_isnt_the_one_that_was_never_adopted() -> None:
    """Two empty texts are no match."""
    local = replace(LOCAL, metadata=replace(LOCAL.metadata, uid=""))
    assert OLD in local_spec(UNADOPTED, local).syncs


def test_what_is_found_is_told_until_it_is_adopted() -> None:
    """The hub hears of all entries, and once it has them, of none."""
    found = report(UNADOPTED, 5, LOCAL, None, NOTHING)
    assert (found.assemblage, found.imported) == ("uid-1", (OLD, MINE))
    assert found.syncs == TOLD
    adopted = report(ADOPTED, 6, LOCAL, None, found)
    assert (adopted.assemblage, adopted.imported) == ("uid-1", ())


def test_how_many_are_well_is_told() -> None:
    """In the same write as how each stands."""
    more = (*TOLD, EntryStatus(name="more", state="updating"), EntryStatus(name="bad", state="failed"))
    told = report(ADOPTED, 5, replace(LOCAL, status=replace(LOCAL.status, syncs=more)), None, NOTHING)
    assert told.ready == "1/3"


@pytest.mark.parametrize(
    ("taken", "generation", "seen", "observed"),
    [
        pytest.param((5, 3), 3, 3, 5, id="taken in"),
        pytest.param((4, 3), 3, 3, 4, id="an older one"),
        pytest.param((5, 3), 3, 2, 2, id="not yet looked at"),
        pytest.param((5, 3), 4, 4, 2, id="changed by someone else"),
        pytest.param((5, 3), 4, 3, 2, id="changed, and not yet looked at"),
        pytest.param(None, 3, 3, 2, id="not delivered"),
        pytest.param((9, 3), 3, 3, 2, id="of another proxy of the name"),
    ],
)
def test_taken_in_means_looked_at(taken: tuple[int, int] | None, generation: int, seen: int, observed: int) -> None:
    """A generation is acknowledged once the Assemblage made from it has been looked at."""
    local = replace(
        LOCAL,
        metadata=replace(LOCAL.metadata, generation=generation),
        status=replace(LOCAL.status, observed_generation=seen),
    )
    assert report(ADOPTED, 5, local, taken, ProxyAssemblageStatus(observed=2)).observed == observed


def test_of_what_isnt_there_nothing_is_told() -> None:
    """An Assemblage that is missing changes nothing, unless all is to be let go: then nothing is left to."""
    before = ProxyAssemblageStatus(observed=2, syncs=TOLD, assemblage="uid-1")
    assert report(ADOPTED, 5, None, (5, 3), before) == before
    released = report(replace(ADOPTED, released=True), 5, None, None, before)
    assert (released.observed, released.syncs) == (5, ())
