"""What goes where: data to stdout, everything said about it to stderr; colour only on terminals."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

from starling.errors import StarlingError

__all__ = [
    "Interrupted",
    "data",
    "error",
    "in_words",
    "interrupted",
    "note",
    "resumable",
    "stderr",
    "stdout",
]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)

_UNIT_ID: Final = re.compile(r"\bcli/([a-z0-9-]+)/Unit\.([a-z0-9.-]+)@this\b", re.ASCII)


class Interrupted(Exception):
    """Ctrl-C, in the middle of work that can be carried on."""

    hint = "the same command carries on from here"


@contextmanager
def resumable() -> Iterator[None]:
    """Work that is written down as it goes: should Ctrl-C end it, the way to carry on is told."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted from None


def data(text: str) -> None:
    """Print what was asked for, exactly as it is."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone: not an error, and nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def note(text: str) -> None:
    """Say something about the work on stderr."""
    stderr.print(in_words(text), markup=False)


def error(problem: StarlingError) -> None:
    """Say what went wrong and the way out."""
    stderr.print("error:", style="bold red", end=" ")
    stderr.print(in_words(problem.message), markup=False)
    if problem.hint:
        _hint(problem.hint)


def interrupted(hint: str = "") -> None:
    """Say that Ctrl-C ended it."""
    note("interrupted")
    if hint:
        _hint(hint)


def in_words(text: str) -> str:
    """A message with the command line's units called as its users call them: `unit <namespace>/<name>`, not by id."""
    return _UNIT_ID.sub(r"unit \1/\2", text)


def _hint(text: str) -> None:
    stderr.print("hint:", style="bold cyan", end=" ")
    stderr.print(in_words(text), markup=False)
