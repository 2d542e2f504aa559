"""What git calls a file's content, and what the artifact store calls it: so that nothing is read twice.

A text file beside the mirror, a line for each blob that was ever read: git's id, the store's digest, the size. Whole
lines are appended while the mirror is held; half a line, left by a crash, is passed over.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

__all__ = ["BlobIndex", "Known"]


class Known(msgspec.Struct, frozen=True):
    """A blob as the store has it."""

    digest: str
    size: int


class BlobIndex:
    """The file. Read anew for each new version, which is seldom; nothing of it stays in memory."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, Known]:
        """All that is known, by git's ids."""
        try:
            lines = self._file.read_text().split("\n")
        except FileNotFoundError:
            return {}
        whole = (line.split(" ") for line in lines[:-1])
        return {parts[0]: Known(parts[1], int(parts[2])) for parts in whole if len(parts) == 3 and parts[2].isdigit()}

    def append(self, found: Mapping[str, Known]) -> None:
        """Remember more."""
        text = "".join(f"{name} {known.digest} {known.size}\n" for name, known in found.items())
        with self._file.open("a") as file:
            if file.tell() and not self._ends_whole():
                file.write("\n")
            file.write(text)

    def _ends_whole(self) -> bool:
        with self._file.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) == b"\n"
