"""What a benchmark gives: rows of a table."""

from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what was measured, how much, and what it is compared with."""

    what: str
    figure: str
    target: str = ""
    held: bool | None = None
