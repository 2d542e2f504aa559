"""One run of kustomize or helm: in a folder of its own, with limits, and an environment that leads nowhere.

Nothing of ours is in the environment: no home, no credentials, no plugins. Unless it may use the network, nothing can
be fetched either, whatever a folder asks for and whichever machine this is: there is no git (nor anything else) on the
PATH; Go's HTTP client is told to use a proxy at a port where nobody can listen, and that it is a CGI program, which
makes it refuse plain HTTP even to this machine, where it would pass proxies by; and it trusts no certificate. With the
network, git may use https alone: no repositories of this machine, no ssh and its keys, no configuration of the machine.
"""

import errno
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starling.programs import Finished, OutputTooLong, run
from starling.rendering.errors import ToolFailed
from starling.rendering.tree import named

__all__ = ["Job", "Limits", "bounded", "complaint", "environment", "scratch"]

MOST_SHOWN: Final = 2000
_NO_NETWORK: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:0"),
    "NO_PROXY": "",
    "no_proxy": "",
    "REQUEST_METHOD": "GET",
    "PATH": "/dev/null",
    "SSL_CERT_FILE": "/dev/null",
    "SSL_CERT_DIR": "/dev/null",
}
_GIT: Final = {
    "GIT_ALLOW_PROTOCOL": "https",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
}
_NETWORK: Final = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_NOISE: Final = re.compile(
    r"# Warning: |WARNING: |Warning: |walk\.go:\d+: |level=|time=|Use --debug flag|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d |\s*$"
)


_NO_MEMORY: Final = re.compile(r"^(?:runtime: out of memory|fatal error: .*(?:memory|OS thread))", re.MULTILINE)
"""How a Go program says that it gets no more."""
_RESERVED: Final = 1 << 30
"""Addresses that a Go program reserves and doesn't use: 0.7 GiB of them before it does anything."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may take: seconds, bytes that are read or written, and bytes of memory.

    Podinfo and cert-manager take helm 50 MB of memory, and kustomize 20.
    """

    seconds: float = 120.0
    size: int = 64 << 20
    memory: int = 1 << 30


@contextmanager
def scratch(folder: Path | None) -> Iterator[Path]:
    """A folder of one run's own, below the given one or else the machine's, gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="starling-render-", dir=folder)).resolve()
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def environment(home: Path | None, *, network: bool) -> dict[str, str]:
    """What a tool finds around it: a home of its own if it needs one, and a network only if it may use it.

    Without either it is the same wherever and whenever it runs: kustomize can write variables into what it makes.
    """
    found = {"KUBECONFIG": "/dev/null", "HELM_PLUGINS": "/dev/null", "LC_ALL": "C.UTF-8", **_GIT}
    if home is not None:
        home.mkdir(exist_ok=True)
        places = {"HOME": "", "TMPDIR": "", "HELM_CACHE_HOME": "cache", "HELM_CONFIG_HOME": "config"}
        found |= {name: str(home / place) for name, place in {**places, "HELM_DATA_HOME": "data"}.items()}
    if not network:
        return {**found, **_NO_NETWORK}
    passed_on = (*_NETWORK, *_PROXIES, *(name.lower() for name in _PROXIES))
    return {**found, **{name: os.environ[name] for name in passed_on if name in os.environ}}


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to render: how its tool is called, a folder in a tree, and what the run may have."""

    command: Sequence[str]
    root: Path
    folder: Path
    own: Path
    """The run's own folder, where it starts."""
    limits: Limits

    @property
    def called(self) -> str:
        """The folder as messages name it."""
        return named(self.root, self.folder)

    async def run(self, arguments: Sequence[str], variables: Mapping[str, str]) -> Finished:
        """Run the tool to its end; ToolFailed if it is too slow, writes too much or wants too much memory."""
        tool = Path(self.command[0]).name
        seconds, size, memory = self.limits.seconds, self.limits.size, self.limits.memory
        command = bounded((*self.command, *arguments), memory, shutil.which("prlimit"))
        try:
            _refuse_missing(self.command[0])
            done = await run(*command, environment=variables, within=seconds, cwd=self.own, longest=size)
        except TimeoutError as error:
            raise ToolFailed(f"{tool} took more than {seconds:g} s for {self.called} and was ended") from error
        except OutputTooLong as error:
            raise ToolFailed(f"{tool} wrote more than {size} bytes for {self.called} and was ended") from error
        except OSError as error:
            raise ToolFailed(f"{tool} can't be run: {error.strerror}") from error
        if done.code != 0 and _NO_MEMORY.search(done.complaints):
            raise ToolFailed(f"{tool} wanted more than {memory} bytes of memory for {self.called} and was ended")
        return done


def bounded(command: Sequence[str], memory: int, prlimit: str | None) -> list[str]:
    """A command that runs another with a limit of memory: by prlimit if there is one, else by the shell.

    The limit is one of addresses, since that of memory itself does nothing on Linux.
    """
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    addresses = memory + _RESERVED if most == resource.RLIM_INFINITY else min(most, memory + _RESERVED)
    if prlimit is not None:
        return [prlimit, f"--as={addresses}", "--", *command]
    # What a shell adds to the environment would be seen. Where addresses can't be limited, it runs without.
    script = f'ulimit -v {addresses // 1024} 2>/dev/null; unset PWD OLDPWD SHLVL _; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command]


def _refuse_missing(program: str) -> None:
    """Raise what running it would raise if nothing else ran it for us."""
    if not os.access(program, os.X_OK):
        code = errno.EACCES if os.path.lexists(program) else errno.ENOENT
        raise OSError(code, os.strerror(code))


_LOGGED = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\] (?:\"command failed\" err=)?")
"""What kubectl puts before its words: a time and a process, which are others each time."""


def _a_file_or_a_patch(failure: re.Match[str]) -> str:
    """What stands where a file's name or a patch may stand; a patch isn't repeated."""
    is_patch = "\n" in failure[1] or "{" in failure[1]
    return "a patch is neither a file nor complete in itself" if is_patch else failure[0]


_QUOTED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"literal sources \[.*", re.DOTALL), "a literal isn't as expected: key=value"),
    (re.compile(r" with config: `.*`(?=: )", re.DOTALL), ""),
    (re.compile(r" patch from \[.*\]", re.DOTALL), " patch"),
    (re.compile(r"evalsymlink failure on '((?:(?!' : lstat ).)*)' : lstat .*", re.DOTALL), _a_file_or_a_patch),
    (re.compile(r"node contents:.*", re.DOTALL), "what it is isn't repeated here"),
)
"""Where kustomize quotes what it was given, which may be secret; and what is said instead."""


def complaint(text: str, places: Mapping[str, str]) -> str:
    """What matters of what a tool said, with folders of this machine named as the reader knows them.

    `places` are folders and what to call them, to which "" means: what is in it is named from there.
    """
    for folder in sorted(places, key=len, reverse=True):
        text = _renamed(text, folder, places[folder])
    lines = [_LOGGED.sub("", line.rstrip()) for line in text.splitlines()]
    said = "\n".join(line for line in lines if not _NOISE.match(line)) or "\n".join(lines)
    said = re.sub(r"^(?:error|Error):\s*", "", said.strip())
    for quoted, instead in _QUOTED:
        said = quoted.sub(instead, said)
    return said if len(said) <= MOST_SHOWN else f"{said[: MOST_SHOWN // 2]} … {said[-MOST_SHOWN // 2 :]}"


def _renamed(text: str, folder: str, called: str) -> str:
    if called:
        return re.sub(re.escape(folder) + r"(?![\w.-])", called.replace("\\", r"\\"), text)
    text = text.replace(f"{folder}/", "")
    return re.sub(re.escape(folder) + r"(?![\w.-])", ".", text)
