"""Where something was written, and the error that says so."""

import msgspec

from starling.errors import InputError

__all__ = ["ManifestError", "Origin"]


class Origin(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place in a file. Documents and lines count from 1; empty documents don't count; 0 is "not known"."""

    file: str = ""
    document: int = 0
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        if not place:
            place = f"line {self.line}" if self.line else "manifest"
        return f"{place} (document {self.document})" if self.document else place


class ManifestError(InputError):
    """A manifest that can't be used; `origin` and the message say where it stands."""

    reason = "InvalidManifest"

    def __init__(self, problem: str, origin: Origin, *, hint: str | None = None) -> None:
        super().__init__(f"{origin}: {problem}", hint=hint)
        self.problem = problem
        self.origin = origin
