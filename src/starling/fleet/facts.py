"""What a rollout is decided from: what is recorded of it, and its clusters as they are seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starling.api.orders import Order
from starling.api.v1alpha1 import Admitted, ClusterMode, RolloutFailure, StageApproval

__all__ = ["Course", "Facts", "Member"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How far the rollout of a target is, as it is recorded: see RolloutStatus, which has these fields."""

    last_good: str = ""
    failed_target: str = ""
    rollback_to: str = ""
    ended: str = ""
    stage: str = ""
    stages_done: tuple[str, ...] = ()
    stage_started: datetime | None = None
    baking_since: datetime | None = None
    approvals: tuple[StageApproval, ...] = ()
    failures: tuple[RolloutFailure, ...] = ()
    retried_at: int = 0
    order: str = ""

    def approved(self, stage: str, *, gate: bool = False) -> bool:
        """Whether someone has approved a stage, or its gate has."""
        return any(each.stage == stage and each.gate == gate for each in self.approvals)

    def failure(self, target: str) -> RolloutFailure | None:
        """That a target failed or was undone, if it is remembered."""
        return next((each for each in reversed(self.failures) if each.target == target), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is recorded of a rollout. `confirmed` is what its annotation starling.dev/confirm says.

    `target` is where clusters go from now on, `previous` what the record has for it; None: the same. `called` is what
    commands call the rollout. `salt` is another for each rollout and each change of its spec, so that what confirms one
    confirms no other. `asked` is the order that someone gave, `passed` the stages whose gates let the target pass,
    `forgotten` the targets of which nobody knows any more what they stand for.
    """

    target: str
    called: str = ""
    course: Course = Course()
    admission: int = 0
    admitted: tuple[Admitted, ...] = ()
    previous: str | None = None
    confirmed: str = ""
    salt: str = ""
    suspended: bool = False
    asked: Order | None = None
    passed: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()

    @property
    def retargeted(self) -> bool:
        """Whether the target is another than the one that those admitted were admitted for."""
        return self.previous is not None and self.previous != self.target

    @property
    def failed(self) -> bool:
        """Whether the target has failed, or was undone."""
        return bool(self.target) and self.course.failed_target == self.target

    @property
    def ended(self) -> bool:
        """Whether the target has been through all stages."""
        return bool(self.target) and self.course.ended == self.target

    @property
    def aim(self) -> str:
        """Where clusters are to be in the end."""
        return (self.course.rollback_to or self.target) if self.failed else self.target

    def tried_again(self, member: "Member") -> bool:
        """Whether what a cluster says of the target is from before it was to be tried again."""
        there = member.entry == self.target and not member.reports(self.target, "succeeded")
        return there and 0 < self.course.retried_at >= member.admission

    @property
    def fallback(self) -> str:
        """The last good target, if it is another, and one that clusters can go to."""
        good = self.course.last_good
        return good if good != self.target and good not in self.forgotten else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A cluster that a rollout selects, has an entry on, or names in its record."""

    name: str
    selected: bool
    labels: Mapping[str, str] = field(default_factory=dict)
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
    """Whether it says anything of the entry."""
    reachable: bool
    adopted: bool
    mode: ClusterMode

    @property
    def leaves(self) -> bool:
        """Whether it has an entry that it isn't to have; one that was found there is nobody's yet."""
        return not self.selected and self.entry is not None and self.admission > 0

    @property
    def able(self) -> bool:
        """Whether what it is told, it can do now."""
        return self.reachable and self.adopted and self.mode == "Active"

    def reports(self, target: str, *states: str) -> bool:
        """Whether it has the target, and says that it is in one of the states at it."""
        return bool(target) and self.entry == self.reported == target and self.state in states
