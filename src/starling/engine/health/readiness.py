"""How ready an object, or a set of objects, is."""

import enum
from collections.abc import Iterable

import msgspec

__all__ = ["Health", "Readiness", "least"]


class Readiness(enum.Enum):
    """In order: that of a set is the least of its members'."""

    UNKNOWN = "Unknown"
    MISSING = "Missing"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    IN_PROGRESS = "InProgress"
    CURRENT = "Current"

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: "Readiness") -> bool:
        return _RANK[self] < _RANK[other]


_RANK = {readiness: rank for rank, readiness in enumerate(Readiness)}


def least(many: Iterable[Readiness]) -> Readiness:
    """The readiness of a set; an empty one is Current."""
    return min(many, default=Readiness.CURRENT)


class Health(msgspec.Struct, frozen=True):
    """An object's readiness and why."""

    readiness: Readiness
    message: str = ""
