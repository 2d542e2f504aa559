"""The stages of a fleet: which clusters are in which, and how much each allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

from starling.api import seconds
from starling.api.v1alpha1 import MOST_ADMITTED, LabelSelector, Rollout, RolloutGate, RolloutStage
from starling.fleet.facts import Member
from starling.fleet.selection import selects

__all__ = ["REST", "Stage", "Staged", "share"]

REST: Final = "rest"
"""The last stage: all clusters that no other selects."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage; `size` is how many clusters it has that the rollout goes to."""

    number: int
    name: str
    size: int
    most: int
    """How many may be on their way at once."""
    budget: int
    """How many may fail."""
    bake: timedelta = timedelta()
    manual: bool = False
    gate: RolloutGate | None = None


@dataclass(frozen=True)
class Staged:
    """A policy's stages with a fleet's clusters; what follows from both is worked out once."""

    policy: Rollout
    members: Sequence[Member]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each cluster's stage, by name: of several that select it, the first."""
        selectors: list[LabelSelector] = [stage.selector for stage in self.policy.stages]
        last = len(selectors)
        return {
            member.name: next((n for n in range(last) if selects(selectors[n], member.labels)), last)
            for member in self.members
        }

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All of them, in their order; the last is "rest"."""
        sizes = [0] * (len(self.policy.stages) + 1)
        for member in self.members:
            sizes[self.numbers[member.name]] += member.selected
        rest = RolloutStage(name="", selector=LabelSelector())
        return tuple(self._stage(n, said, sizes[n]) for n, said in enumerate((*self.policy.stages, rest)))

    def of(self, name: str) -> Stage:
        """A cluster's stage."""
        return self.stages[self.numbers[name]]

    def number(self, name: str) -> int:
        """The number of the stage of that name; the first if there is none, or no longer."""
        return next((stage.number for stage in self.stages if stage.name == name), 0)

    def _stage(self, number: int, said: RolloutStage, size: int) -> Stage:
        policy = self.policy
        most = said.max_concurrent if said.max_concurrent is not None else policy.max_concurrent
        return Stage(
            number=number,
            name=said.name or REST,
            size=size,
            most=min(max(1, share(most, size)), MOST_ADMITTED),
            budget=share(policy.max_failures, size),
            bake=timedelta(seconds=seconds(said.bake)),
            manual=said.approval == "Manual",
            gate=said.gate,
        )


def share(number: int | str, of: int) -> int:
    """How many of a set a number, or a percentage rounded down, is."""
    return number if isinstance(number, int) else of * int(number.removesuffix("%")) // 100
