"""Detached processes, found again by a mark in their environment.

A file with a process id lies as soon as its writer is killed or the id is reused. So every component carries
`STARLING_LOCAL_COMPONENT=<folder>:<component>`, and what runs is read from /proc: true at any instant, whoever
started it.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from starling.local.errors import LocalError

__all__ = ["Process", "alive", "exit_text", "find", "find_all", "kill", "spawn"]

MARK = "STARLING_LOCAL_COMPONENT"
PROC = Path("/proc")
POLL = 0.02
EXEC_POLL = 0.0005
EXEC_LIMIT = 0.2
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
KILL_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A running component of the cluster in a folder."""

    pid: int
    folder: Path
    component: str


def find(folder: Path) -> list[Process]:
    """Give the running components of the cluster in that folder."""
    return [process for process in find_all() if process.folder == folder]


def find_all() -> list[Process]:
    """Give the running components of all of this user's clusters, wherever they are."""
    if not PROC.joinpath("self/environ").exists():
        raise LocalError(
            "control planes on this machine need Linux: their processes are found through /proc",
            hint="use clusters of your own; most commands take --kubeconfig",
        )
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [process for process in map(read_mark, pids) if process]


def read_mark(pid: int) -> Process | None:
    """Give what a process is, if it is one of ours and alive; whatever mark another user's carries means nothing."""
    try:
        if (PROC / str(pid)).stat().st_uid != os.geteuid():
            return None
        environment = read_environment(pid)
    except OSError:
        return None
    for variable in environment.split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == MARK.encode():
            folder, _, component = os.fsdecode(value).rpartition(":")
            return Process(pid, Path(folder), component)
    return None


def read_environment(pid: int) -> bytes:
    """Give a process's environment; the dead have none.

    Nor has, for an instant, a process that is just becoming another program: its arguments are missing as well then,
    and it is waited for, though not long, since there are processes that never have either.
    """
    process = PROC / str(pid)
    deadline = time.monotonic() + EXEC_LIMIT
    while True:
        if environment := (process / "environ").read_bytes():
            return environment
        if (process / "cmdline").read_bytes():
            return (process / "environ").read_bytes()
        # After the name in parentheses: state, parent, group, session, terminal, its group, flags.
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in b"ZX" or int(fields[6]) & KERNEL_THREAD or time.monotonic() > deadline:
            return b""
        time.sleep(EXEC_POLL)


def alive(process: Process) -> bool:
    """Tell whether that very process still runs, not another that got its id."""
    return read_mark(process.pid) == process


def spawn(folder: Path, component: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Process:
    """Start a component in the folder, in a session of its own, its output appended to the log."""
    # The shell gives way to the component at once: posix_spawn can't change the folder, and Popen objects
    # complain about processes that outlive them.
    shell = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command]
    to_log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        shell[0],
        shell,
        {**environment, MARK: f"{folder}:{component}"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), to_log, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return Process(pid, folder, component)


async def kill(processes: Iterable[Process]) -> None:
    """End processes and return when none is left.

    Not politely: what they would save is deleted next, and an API server takes seconds over its farewell.
    """
    left = list(processes)
    for process in left:
        if alive(process):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + KILL_LIMIT
    while running := [process for process in left if alive(process)]:
        if time.monotonic() > deadline:
            names = ", ".join(f"{process.component} ({process.pid})" for process in running)
            raise LocalError(f"these processes didn't end when killed: {names}")
        await asyncio.sleep(POLL)
    for process in left:
        exit_text(process)


def exit_text(process: Process) -> str:
    """Say how a process ended, as far as its parent can know; its entry in the process table goes away with that."""
    try:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return "it ended"
    if pid == 0:
        return "it runs"
    code = os.waitstatus_to_exitcode(status)
    return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it exited with code {code}"
