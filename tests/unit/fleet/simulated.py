"""What a simulated hub holds: a Module's record, and of each cluster what is so there and what is known of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from starling.api.v1alpha1 import Admitted, ClusterMode, Entry, ExactGit, Rollout, SourceReference
from starling.fleet import Course, Decision, Facts, Member

APP: Final = "app"
SOURCE: Final = SourceReference(git=ExactGit(url="https://git.test/app.git", commit="a" * 40))


def entry(name: str, target: str, admission: int = 0) -> Entry:
    """An entry of the cluster; which one doesn't matter."""
    return Entry(name=name, unit=f"test/default/Module.{name}@c", target=target, admission=admission, source=SOURCE)


FOREIGN: Final = entry("foreign", "t1:foreign", 7)
"""What a cluster runs besides, of no Module that is known here."""


@dataclass(slots=True)
class SimCluster:
    """One cluster: what the hub holds of it, and, from `has` on, what is so there and the hub is told later."""

    name: str
    labelled: bool = True
    labels: dict[str, str] = field(default_factory=dict)
    """What stages go by; never changed, only replaced."""
    mode: ClusterMode = "Active"
    adopted: bool = True
    imported: Entry | None = None
    """What it ran before the hub knew of it, until that is the hub's, too."""
    cut_off: bool = False
    known_cut_off: bool = False
    entries: tuple[Entry, ...] = (FOREIGN,)
    generation: int = 1
    observed: int = 1
    reported: str = ""
    state: str = ""
    has: str | None = None
    taken: int = 1
    doing: str = ""
    moving: bool = False
    """Its entry was moved, and the hub hasn't heard yet that it got there."""
    excused: bool = False
    """… and its time was up."""
    overlooked: bool = False
    """It lost its place when it had no entry, or was seen so: nothing tells who is behind."""
    stage: int = 0
    """The stage in which it was admitted last."""
    shifted: bool = False
    """Its labels are others than when it was."""
    touched: frozenset[str] = frozenset()
    """The targets that were ever at work there."""
    arrived: tuple[str, datetime] | None = None
    """Where it got to last in time, and when the hub heard of it."""

    @property
    def condition(self) -> tuple[object, ...]:
        """All that may change by itself."""
        told = (self.generation, self.observed, self.reported, self.state, self.known_cut_off)
        return (self.entries, *told, self.has, self.taken, self.doing, self.moving, self.excused)

    @property
    def entry(self) -> Entry | None:
        return next((each for each in self.entries if each.name == APP), None)

    def seen(self) -> Member:
        there = self.entry
        return Member(
            name=self.name,
            selected=self.labelled,
            labels=self.labels,
            entry=there.target if there else None,
            admission=there.admission if there else 0,
            reported=self.reported,
            state=self.state,
            acknowledged=self.observed >= self.generation,
            listed=bool(self.state),
            reachable=not self.known_cut_off,
            adopted=self.adopted,
            mode=self.mode,
        )

    def adopt(self) -> None:
        """What it ran before becomes the hub's."""
        if not self.adopted:
            self.entries += (self.imported,) if self.imported else ()
            self.adopted, self.imported, self.generation = True, None, self.generation + 1

    def take(self) -> None:
        """What the hub says arrives."""
        there = self.entry or self.imported
        wanted = there.target if there else None
        if wanted != self.has:
            self.has, self.doing = wanted, "updating" if wanted is not None else ""
            self.touched |= {wanted} if wanted is not None else frozenset()
        self.taken = self.generation

    def tell(self, now: datetime) -> None:
        """What is so arrives at the hub."""
        if not self.adopted:
            self.reported, self.state = self.has or "", self.doing
            return
        self.observed, self.reported, self.state = self.taken, self.has or "", self.doing
        wanted = self.entry.target if self.entry else None
        arrived = self.reported == (wanted or "") and self.state in ("succeeded", "failed", "")
        if self.observed == self.generation and arrived:
            if self.moving and not self.excused and self.state == "succeeded":
                self.arrived = (self.reported, now)
            self.moving = self.excused = False


@dataclass(frozen=True, slots=True)
class Record:
    """What the Module's status has."""

    version: int = 0
    target: str = ""
    course: Course = field(default_factory=Course)
    admission: int = 0
    admitted: tuple[Admitted, ...] = ()

    @property
    def names(self) -> dict[str, Admitted]:
        return {each.cluster: each for each in self.admitted}


@dataclass(frozen=True, slots=True)
class Look:
    """All clusters as they were at once, and where each had got to last."""

    members: list[Member]
    arrived: dict[str, tuple[str, datetime] | None]


@dataclass(frozen=True, slots=True)
class Thought:
    """A decision that isn't written yet, and what it was made from."""

    policy: Rollout
    record: Record
    facts: Facts
    members: list[Member]
    arrived: dict[str, tuple[str, datetime] | None]
    decision: Decision
    now: datetime
