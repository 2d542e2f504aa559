"""The entry point. It loads next to nothing itself: Ctrl-C must mean the same while the commands are being loaded."""

import os
import signal
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run the command line; exit codes are told in the package's tour."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else who started us has it ignored
    if ours:
        signal.signal(signal.SIGINT, _end)
    from starling.cli.app import run  # noqa: PLC0415 - a moment in which one may think better of it

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End at once: an exception, raised in the middle of an import, may be lost or become another."""
    os.write(2, b"interrupted\n")
    os._exit(130)
