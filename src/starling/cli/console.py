"""What goes where: data to stdout, everything said about it to stderr; colour only on terminals."""

import os
import sys

from rich.console import Console

from starling.errors import StarlingError

__all__ = ["data", "error", "note", "stderr", "stdout"]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


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
    stderr.print(text, markup=False)


def error(problem: StarlingError) -> None:
    """Say what went wrong and the way out."""
    stderr.print("error:", style="bold red", end=" ")
    stderr.print(problem.message, markup=False)
    if problem.hint:
        stderr.print("hint:", style="bold cyan", end=" ")
        stderr.print(problem.hint, markup=False)
