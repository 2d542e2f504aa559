"""What Presence hears of clusters that are spoken with: what may pass only once it has lasted."""

from starling.api import Assemblage, ObjectMeta
from starling.api.v1alpha1 import AssemblageSpec, AssemblageStatus
from starling.controllers.presence import Presence, Verdict
from starling.controllers.push import looked_at
from starling.runtime import Key
from tests.unit.test_workqueue import VirtualClock

EDGE = Key("fleet", "edge-7")


class Case:
    """A cluster that is spoken with, and time that passes when told to. Mutable."""

    def __init__(self) -> None:
        self.clock, self.presence = VirtualClock(), Presence()
        self.verdict = Verdict(self.presence, EDGE, lost_after=180.0, clock=self.clock)

    @property
    def reachable(self) -> bool | None:
        """What Presence knows."""
        seen = self.presence.get(EDGE)
        return seen.reachable if seen is not None else None


async def test_what_passes_is_no_news() -> None:
    """A trouble that is over in time was none, and the next one has all its time again."""
    case = Case()
    case.verdict.seen()
    for _ in range(3):
        case.verdict.wrong("connection", "refused")
        assert case.verdict.look() == 180.0
        await case.clock.advance(170)
        assert case.verdict.look() == 10.0
        case.verdict.right("connection")
        assert case.verdict.look() is None
    assert case.reachable is True


async def test_what_lasts_counts_from_when_it_began() -> None:
    """Another reason on the way doesn't begin it anew; and being seen doesn't end it."""
    case = Case()
    case.verdict.seen()
    case.verdict.wrong("connection", "refused")
    await case.clock.advance(100)
    case.verdict.wrong("connection", "timed out")
    await case.clock.advance(80)
    assert case.verdict.look() is None
    seen = case.presence.get(EDGE)
    assert seen is not None
    assert (seen.reachable, seen.why) == (False, "timed out")
    case.verdict.seen()
    assert case.reachable is False
    case.verdict.right("connection")
    case.verdict.seen()
    assert case.reachable is True


async def test_what_wont_pass_counts_at_once() -> None:
    """Waiting for it to be over would only hide it."""
    case = Case()
    case.verdict.seen()
    case.verdict.wrong("connection", "there is no namespace", at_once=True)
    assert case.verdict.look() is None
    assert case.reachable is False


async def test_each_part_has_its_own_time() -> None:
    """An agent that is silent for long makes the cluster lost, though its server has only just come back."""
    case = Case()
    case.verdict.wrong("agent", "its agent doesn't answer")
    await case.clock.advance(100)
    case.verdict.wrong("connection", "refused")
    assert case.verdict.look() == 80.0
    case.verdict.right("connection")
    case.verdict.seen()
    assert case.reachable is True
    await case.clock.advance(80)
    case.verdict.look()
    assert case.reachable is False


def test_an_agent_that_lets_go_has_its_time() -> None:
    """Who hasn't looked at what is written is silent; who lets go of things takes as long as they take."""
    spec = AssemblageSpec(instance="fleet")
    behind = Assemblage(
        metadata=ObjectMeta(name="fleet", generation=3), spec=spec, status=AssemblageStatus(observed_generation=2)
    )
    assert not looked_at(behind)
    assert looked_at(Assemblage(metadata=ObjectMeta(generation=2), spec=spec, status=behind.status))
    leaving = AssemblageSpec(instance="fleet", released=True)
    assert looked_at(Assemblage(metadata=behind.metadata, spec=leaving, status=behind.status))
