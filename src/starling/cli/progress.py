"""What a command shows while it works: a line per object, and below them, on a terminal, what it waits for."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.text import Text

from starling.cli import console

__all__ = ["LineByLine", "Progress", "counting", "showing"]

QUIET_SECONDS: Final = 10.0

_STYLES: Final = {"created": "green", "changed": "yellow", "failed": "red", "pruned": "magenta", "deleted": "magenta"}


class Progress:
    """Shows lines as they come and what is waited for. Mutable: what was last waited for."""

    def __init__(self, line: Callable[[Text], None], waiting: Callable[[str], None]) -> None:
        self._line = line
        self._waiting = waiting
        self._last = ""

    def done(self, what: str, outcome: str) -> None:
        """Say what became of something."""
        self._line(Text(f"{what} ").append(outcome, style=_STYLES.get(outcome, "")))

    def wait(self, what: str) -> None:
        """Say what is waited for, unless that was said already."""
        if what and what != self._last:
            self._last = what
            self._waiting(console.in_words(what))


@contextmanager
def showing(*, data: bool) -> Iterator[Progress]:
    """Progress on stdout where the lines are the answer (`data`), else on stderr; plain where that is no terminal."""
    screen: Console = console.stdout if data else console.stderr
    if not screen.is_terminal:
        yield Progress(lambda line: (console.data if data else console.note)(line.plain), _wait_note)
        return
    with screen.status(Text("…")) as display:
        yield Progress(screen.print, lambda what: display.update(Text(f"waiting: {what}")))


def _wait_note(what: str) -> None:
    console.note(f"waiting: {what}")


@contextmanager
def counting() -> Iterator[Callable[[str], None]]:
    """Give what shows progress on stderr: in place on a terminal, else a line now and then."""
    if console.stderr.is_terminal:
        with console.stderr.status("…") as display:
            yield InPlace(display.update)
    else:
        yield LineByLine(console.note, time.monotonic)


class InPlace:
    """Counts in place; what isn't counting stays on the screen."""

    def __init__(self, update: Callable[[str], None]) -> None:
        self.update = update

    def __call__(self, message: str) -> None:
        """Show how far it is, or say what happened."""
        if not re.search(r": \d+ of \d+ ", message):
            console.note(message)
        self.update(message)


class LineByLine:
    """Prints what happens, and of messages that differ only in their numbers one in ten seconds."""

    def __init__(self, note: Callable[[str], None], monotonic: Callable[[], float]) -> None:
        self.note = note
        self.monotonic = monotonic
        self.kind = ""
        self.printed = 0.0

    def __call__(self, message: str) -> None:
        """Print the message, unless one like it was just printed."""
        kind = re.sub(r"\d+", "", message)
        now = self.monotonic()
        if kind != self.kind or now - self.printed >= QUIET_SECONDS:
            self.note(message)
            self.kind, self.printed = kind, now
