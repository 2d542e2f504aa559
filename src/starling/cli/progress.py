"""What a command shows while it works: a line per object, and below them, on a terminal, what it waits for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.text import Text

from starling.cli import console
from starling.engine import SyncEvent, UnitSeen

__all__ = ["Progress", "showing"]

_STYLES: Final = {"created": "green", "changed": "yellow", "failed": "red", "pruned": "magenta", "deleted": "magenta"}


class Progress:
    """Shows lines as they come and what is waited for. Mutable: what was last waited for."""

    def __init__(self, line: Callable[[Text], None], waiting: Callable[[str], None]) -> None:
        self._line = line
        self._waiting = waiting
        self._last = ""

    def show(self, news: SyncEvent | UnitSeen) -> None:
        """One task done; or how the unit stands that is waited for."""
        if isinstance(news, SyncEvent):
            self._line(Text(f"{news.task.key} ").append(news.outcome, style=_STYLES.get(news.outcome, "")))
        else:
            self.wait(news.trouble.message if news.trouble is not None else news.status.message)

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
