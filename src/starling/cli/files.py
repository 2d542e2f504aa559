"""Files as commands name them, where - is stdin."""

import sys
from pathlib import Path
from typing import Final

__all__ = ["STDIN", "content"]

STDIN: Final = "-"


def content(file: Path) -> tuple[bytes, str]:
    """What is in a file, or comes from stdin, and what to call that."""
    return (sys.stdin.buffer.read(), "stdin") if str(file) == STDIN else (file.read_bytes(), str(file))
