"""What a rollout is decided from: what is recorded of a Module, and its clusters as they are seen."""

from dataclasses import dataclass

from starling.api.v1alpha1 import Admitted, ClusterMode

__all__ = ["Facts", "Member"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is recorded of a Module. `confirmed` is what its annotation starling.dev/confirm says.

    `target` is where clusters go from now on, `previous` what the record has for it; None: the same. `salt` is another
    for each Module and each change of its spec, so that what confirms one confirms no other.
    """

    target: str
    last_good: str = ""
    admission: int = 0
    admitted: tuple[Admitted, ...] = ()
    previous: str | None = None
    confirmed: str = ""
    salt: str = ""
    suspended: bool = False

    @property
    def retargeted(self) -> bool:
        """Whether the target is another than the one that those admitted were admitted for."""
        return self.previous is not None and self.previous != self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A cluster that a Module selects, has an entry on, or names in its record."""

    name: str
    selected: bool
    entry: str | None
    """The target of its entry; None: it has none."""
    admission: int
    """The admission counter of its entry."""
    reported: str
    """The target that it says its state is about."""
    state: str
    """updating, succeeded, failed; empty: it says nothing."""
    acknowledged: bool
    """Whether it has taken in all that its ProxyAssemblage says."""
    listed: bool
    """Whether it says anything of the Module's entry."""
    reachable: bool
    adopted: bool
    mode: ClusterMode

    @property
    def leaves(self) -> bool:
        """Whether it has an entry of the Module's that it isn't to have; one that was found there is nobody's yet."""
        return not self.selected and self.entry is not None and self.admission > 0

    @property
    def able(self) -> bool:
        """Whether what it is told, it can do now."""
        return self.reachable and self.adopted and self.mode == "Active"

    def reports(self, target: str, *states: str) -> bool:
        """Whether it has the target, and says that it is in one of the states at it."""
        return bool(target) and self.entry == self.reported == target and self.state in states
