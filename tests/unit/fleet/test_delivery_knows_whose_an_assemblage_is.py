"""Whose an Assemblage is: one proxy's at a time, of which no older state counts."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from starling.api import Assemblage, ObjectMeta, ProxyAssemblage
from starling.api.v1alpha1 import AssemblageSpec, AssemblageStatus, Entry, ProxyAssemblageStatus
from starling.fleet.delivery import Origin, adopt, local_spec, origin_of, report, terms
from tests.unit.fleet.simulated import entry

OLD, NEW, MORE, GONE = entry("app", "t1:old"), entry("app", "t1:new"), entry("more", "t1:m"), entry("gone", "t1:g")
UID = "uid-1"


def proxy(
    *entries: Entry, name: str = "a", uid: str = "proxy-a", generation: int = 5, adopted: str = "", told: str = ""
) -> ProxyAssemblage:
    """What the hub says."""
    return ProxyAssemblage(
        metadata=ObjectMeta(name=name, uid=uid, generation=generation),
        spec=AssemblageSpec(instance="fleet", adopted=adopted, syncs=entries),
        status=ProxyAssemblageStatus(assemblage=told),
    )


def local(*entries: Entry, origin: Origin | None, released: bool = False) -> Assemblage:
    """What is on the cluster."""
    annotations = origin.annotations if origin is not None else {}
    return Assemblage(
        metadata=ObjectMeta(name="fleet", uid=UID, generation=3, annotations=annotations),
        spec=AssemblageSpec(instance="fleet", syncs=entries, released=released),
        status=AssemblageStatus(observed_generation=3),
    )


OWN = Origin("a", "proxy-a", 5)
ANOTHER_HUBS = Origin("a", "proxy-z", 40)
ANOTHER_NAME = Origin("b", "proxy-b", 1)


def test_what_is_recorded_is_read_again() -> None:
    """A record survives; without one, or one that a hand has damaged, nobody has said."""
    assert origin_of(local(origin=OWN)) == OWN
    assert origin_of(local(origin=None)) is None
    damaged = replace(OWN, uid="")
    assert origin_of(local(origin=damaged)) is None


@pytest.mark.parametrize("origin", [None, OWN, replace(OWN, generation=4)], ids=["nobody's", "ours", "ours, older"])
def test_what_is_ours_goes_on(origin: Origin | None) -> None:
    """An adopted Assemblage that nobody else has is what its proxy says, and recorded with it."""
    ours = proxy(NEW, adopted=UID)
    found = terms(ours, local(OLD, GONE, origin=origin))
    assert (found.rival, found.spec, found.origin, found.behind) == (None, ours.spec, OWN, False)


@pytest.mark.parametrize(
    ("mine", "origin"),
    [
        pytest.param(proxy(adopted=UID), ANOTHER_NAME, id="the same cluster twice"),
        pytest.param(proxy(), ANOTHER_NAME, id="the same cluster twice, the second is new"),
        pytest.param(proxy(adopted="uid-0"), ANOTHER_NAME, id="a kubeconfig of another managed cluster"),
        pytest.param(proxy(adopted=UID), ANOTHER_HUBS, id="another hub has taken it over"),
        pytest.param(proxy(adopted=f"{UID}@7"), ANOTHER_HUBS, id="the same, once restored"),
        pytest.param(proxy(told=UID), ANOTHER_HUBS, id="another hub has, before we were done"),
    ],
)
def test_what_is_anothers_is_left_alone(mine: ProxyAssemblage, origin: Origin) -> None:
    """The first of two stays, and who has lost it doesn't fight back."""
    assert terms(mine, local(OLD, origin=origin)).rival == origin


def test_a_rebuilt_hub_takes_over() -> None:
    """A proxy of the same name that has never had it is recorded at once, and imports before anything changes."""
    mine = proxy(NEW, MORE, adopted="uid-0")
    there = local(OLD, GONE, origin=ANOTHER_HUBS)
    found = terms(mine, there)
    assert (found.rival, found.origin) == (None, OWN)
    assert local_spec(found.spec, there).syncs == (OLD, GONE, MORE)


def test_what_was_let_go_is_anyones() -> None:
    """A cluster that its hub has let go of may be added by another name."""
    assert terms(proxy(), local(origin=ANOTHER_NAME, released=True)).rival is None
    still = local(origin=ANOTHER_NAME, released=True)
    assert terms(proxy(), replace(still, status=AssemblageStatus(observed_generation=2))).rival == ANOTHER_NAME


def test_a_hub_restored_from_a_backup_imports_again() -> None:
    """Nothing goes back, nothing removed since comes back; the hub takes over what runs, and goes on from there."""
    mine = proxy(OLD, GONE, adopted=UID)
    there = local(NEW, MORE, origin=replace(OWN, generation=40))
    found = terms(mine, there)
    assert (found.behind, found.origin) == (True, replace(OWN, generation=40))
    wanted = local_spec(found.spec, there)
    assert wanted.syncs == (NEW, MORE)

    told = report(found.spec, 5, there, None, mine.status)
    assert (told.assemblage, told.imported) == (f"{UID}@3", (NEW, MORE))
    again = replace(mine, spec=adopt(mine.spec, told), metadata=replace(mine.metadata, generation=6), status=told)
    assert (again.spec.syncs, again.spec.adopted) == ((NEW, MORE), f"{UID}@3")

    after = terms(again, there)
    assert (after.behind, after.spec, after.origin) == (False, again.spec, replace(OWN, generation=6))
    assert local_spec(after.spec, there) == again.spec
    done = report(after.spec, 6, there, None, told)
    assert (done.assemblage, done.imported) == (again.spec.adopted, ())


def test_only_what_runs_now_is_adopted_again() -> None:
    """An adoption of an earlier restoration, or of what has changed since, is worth nothing."""
    there = local(NEW, origin=replace(OWN, generation=40))
    assert terms(proxy(OLD, adopted=f"{UID}@2"), there).behind


def test_a_hub_that_knew_nothing_keeps_its_own_entries() -> None:
    """A first adoption adds what was found; its count of admissions is another hub's and begins anew."""
    found = ProxyAssemblageStatus(assemblage=UID, imported=(replace(OLD, admission=9), replace(GONE, admission=9)))
    adopted = adopt(proxy(NEW, adopted="uid-0").spec, found)
    assert adopted.syncs == (NEW, replace(GONE, admission=0))
    assert adopted.adopted == UID


class Hub:
    """A hub in its own right, with a proxy for the one cluster. Mutable: the proxy."""

    def __init__(self, name: str, uid: str, held: Entry) -> None:
        self.proxy = proxy(held, name=name, uid=uid, generation=1)

    def assembles(self) -> None:
        """Adopt what was told."""
        status = self.proxy.status
        if status.assemblage and status.assemblage != self.proxy.spec.adopted:
            meta = replace(self.proxy.metadata, generation=self.proxy.metadata.generation + 1)
            self.proxy = replace(self.proxy, spec=adopt(self.proxy.spec, status), metadata=meta)

    def delivers(self, there: Assemblage) -> Assemblage:
        """Have the Assemblage as it should be, if it may, and tell how it is."""
        found = terms(self.proxy, there)
        if found.rival is not None:
            return there
        wanted = local_spec(found.spec, there)
        changed = there.spec != wanted
        meta = replace(
            there.metadata,
            generation=there.metadata.generation + changed,
            annotations=found.origin.annotations,
        )
        after = replace(there, spec=wanted, metadata=meta)
        told = report(found.spec, self.proxy.metadata.generation, after, None, self.proxy.status)
        self.proxy = replace(self.proxy, status=told)
        return after


@given(
    names=st.sampled_from([("a", "b"), ("a", "a")]),
    turns=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30),
)
def test_two_hubs_come_to_rest(names: tuple[str, str], turns: Sequence[tuple[bool, bool]]) -> None:
    """In whatever order two take turns, in the end one of them has it, and nothing is written any more."""
    hubs = [Hub(name, f"proxy-{index}", entry(f"of-{index}", "t1:of")) for index, name in enumerate(names)]
    there = local(OLD, origin=None)
    for second, assembles in [*turns, *[(turn % 2 == 0, turn % 4 > 1) for turn in range(16)]]:
        if assembles:
            hubs[second].assembles()
        else:
            there = hubs[second].delivers(there)
        assert OLD in there.spec.syncs
    rest = there
    for hub in hubs * 2:
        hub.assembles()
        there = hub.delivers(there)
    assert there == rest
    assert sum(terms(hub.proxy, there).rival is None for hub in hubs) == 1
