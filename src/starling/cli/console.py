"""What goes where: data to stdout, everything said about it to stderr; colour only on terminals."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec
from rich.console import Console

from starling.errors import StarlingError

__all__ = [
    "Ended",
    "Interrupted",
    "data",
    "document",
    "ended",
    "error",
    "in_words",
    "note",
    "resumable",
    "run",
    "stderr",
    "stdout",
]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)

Result = TypeVar("Result")

_UNIT_ID: Final = re.compile(r"\bcli/([a-z0-9-]+)/Unit\.([a-z0-9.-]+)@this\b", re.ASCII)


class Ended(Exception):
    """SIGTERM, in the middle of work; the hint is how to carry on, if one can."""

    word = "ended"
    code = 128 + signal.SIGTERM

    def __init__(self, hint: str = "") -> None:
        super().__init__(hint)
        self.hint = hint


class Interrupted(Ended):
    """Ctrl-C."""

    word = "interrupted"
    code = 128 + signal.SIGINT


@contextmanager
def resumable() -> Iterator[None]:
    """Work that is written down as it goes: should Ctrl-C or SIGTERM end it, the way to carry on is told."""
    hint = "the same command carries on from here"
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(hint) from None
    except Ended as ending:
        raise type(ending)(hint) from None


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Do asynchronous work; SIGTERM cancels it as Ctrl-C does, so that it takes its files and programs along.

    Ended, after that.
    """
    stopping = _Stopping()
    try:
        return asyncio.run(stopping.attend(work))
    except asyncio.CancelledError:
        if stopping.told:
            raise Ended from None
        raise


class _Stopping:
    """Whether SIGTERM has come. Mutable."""

    told = False

    async def attend(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do the work, and stop it once told to."""
        task = asyncio.current_task()
        assert task is not None
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:  # else who started us wants it so
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop, task)
        return await work

    def _stop(self, task: "asyncio.Task[Any]") -> None:
        if not self.told:  # once is enough: another would disturb what is being put away
            self.told = True
            task.cancel()


def data(text: str) -> None:
    """Print what was asked for, exactly as it is."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone: not an error, and nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def document(content: Mapping[str, Any]) -> None:
    """One JSON document, that people can read too."""
    data(msgspec.json.format(msgspec.json.encode(content)).decode())


def note(text: str) -> None:
    """Say something about the work on stderr."""
    stderr.print(in_words(text), markup=False)


def error(problem: StarlingError) -> None:
    """Say what went wrong and the way out."""
    stderr.print("error:", style="bold red", end=" ")
    stderr.print(in_words(problem.message), markup=False)
    if problem.hint:
        _hint(problem.hint)


def ended(ending: Ended) -> None:
    """Say what ended it, and how to carry on."""
    note(ending.word)
    if ending.hint:
        _hint(ending.hint)


def in_words(text: str) -> str:
    """A message with the command line's units called as its users call them: `unit <namespace>/<name>`, not by id."""
    return _UNIT_ID.sub(r"unit \1/\2", text)


def _hint(text: str) -> None:
    stderr.print("hint:", style="bold cyan", end=" ")
    stderr.print(in_words(text), markup=False)
