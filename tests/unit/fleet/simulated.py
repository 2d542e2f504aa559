"""What a simulated hub holds: a Module's record, and of each cluster what is so there and what is known of it."""

from dataclasses import dataclass
from typing import Final

from starling.api.v1alpha1 import Admitted, ClusterMode, Entry, ExactGit, SourceReference
from starling.fleet import Member

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

    @property
    def entry(self) -> Entry | None:
        return next((each for each in self.entries if each.name == APP), None)

    def seen(self) -> Member:
        there = self.entry
        return Member(
            name=self.name,
            selected=self.labelled,
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
        self.taken = self.generation

    def tell(self) -> None:
        """What is so arrives at the hub."""
        if not self.adopted:
            self.reported, self.state = self.has or "", self.doing
            return
        self.observed, self.reported, self.state = self.taken, self.has or "", self.doing
        wanted = self.entry.target if self.entry else None
        arrived = self.reported == (wanted or "") and self.state in ("succeeded", "failed", "")
        if self.observed == self.generation and arrived:
            self.moving = self.excused = False


@dataclass(frozen=True, slots=True)
class Record:
    """What the Module's status has."""

    version: int = 0
    target: str = ""
    last_good: str = ""
    admission: int = 0
    admitted: tuple[Admitted, ...] = ()

    @property
    def names(self) -> dict[str, Admitted]:
        return {each.cluster: each for each in self.admitted}
