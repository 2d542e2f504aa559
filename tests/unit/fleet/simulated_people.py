"""What people do around a simulated rollout: the orders they give, and the gates that they keep."""

from dataclasses import dataclass, field
from typing import Literal

from starling.api.orders import Order


@dataclass(slots=True)
class People:
    """What they have said so far; `order` is the annotation, which has one order at a time."""

    order: Order | None = None
    given: int = 0
    approved: set[tuple[str, str]] = field(default_factory=set)
    """Which target may go to which stage."""
    passed: set[tuple[str, str]] = field(default_factory=set)
    """Which target a stage's gate lets pass."""

    def approve(self, target: str, stage: str) -> None:
        self._give("approve", target, stage=stage)
        self.approved.add((target, stage))

    def retry(self, target: str) -> None:
        self._give("retry", target)

    def undo(self, target: str, to: str) -> None:
        self._give("undo", target, to=to)

    def _give(self, verb: Literal["approve", "retry", "undo"], target: str, *, stage: str = "", to: str = "") -> None:
        self.given += 1
        self.order = Order(id=str(self.given), verb=verb, target=target, stage=stage, to=to, by="ann")
