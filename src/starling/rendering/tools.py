"""Where kustomize and helm come from.

Each is, in this order: the program that STARLING_KUSTOMIZE or STARLING_HELM names; one on the PATH (for kustomize,
kubectl will do, which has it built in, unless ours was built before); one built once from the Go module proxy at a
pinned version, kept under `$XDG_CACHE_HOME/starling`. A program there is whole: whoever is interrupted leaves none,
whoever comes meanwhile waits.
"""

import asyncio
import os
import shutil
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starling.files import locked
from starling.programs import child
from starling.rendering.errors import ToolMissing

__all__ = ["HELM", "KUSTOMIZE", "GoProgram", "Report", "Tools", "build", "find_helm", "find_kustomize", "find_tools"]

REPORT_INTERVAL: Final = 1.0
OLDEST_GO: Final = "1.26"

Report = Callable[[str], None]
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tools:
    """How each tool is called, up to its first argument; () if it is to be found when first needed."""

    kustomize: Command = ()
    """Such as ("kustomize", "build") or ("kubectl", "kustomize"): a folder comes after it."""
    helm: Command = ()


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program that Go can build, by the package that it is and the version to take."""

    name: str
    package: str
    version: str
    variable: str
    """The environment variable that names another one."""
    alternative: str
    """What else is taken from the PATH, as a message says it."""


KUSTOMIZE: Final = GoProgram(
    "kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1", "STARLING_KUSTOMIZE", "kustomize or kubectl"
)
HELM: Final = GoProgram("helm", "helm.sh/helm/v3/cmd/helm", "v3.21.4", "STARLING_HELM", "helm")


async def find_tools(report: Report) -> Tools:
    """Both, built now where need be."""
    return Tools(await find_kustomize(report), await find_helm(report))


async def find_kustomize(report: Report) -> Command:
    """How to call kustomize."""
    if program := _named_by(KUSTOMIZE):
        return _kustomize(program)
    built = _built(KUSTOMIZE)
    program = shutil.which("kustomize") or (str(built) if built.exists() else shutil.which("kubectl"))
    return _kustomize(program or str(await build(KUSTOMIZE, report)))


async def find_helm(report: Report) -> Command:
    """How to call helm."""
    return (_named_by(HELM) or shutil.which("helm") or str(await build(HELM, report)),)


def _kustomize(program: str) -> Command:
    return (program, "kustomize" if Path(program).name == "kubectl" else "build")


def _named_by(tool: GoProgram) -> str | None:
    """The program that a variable names; it is an error if there is none, rather than quietly taking another."""
    wanted = os.environ.get(tool.variable)
    if not wanted:
        return None
    program = shutil.which(wanted)
    if program is None:
        raise ToolMissing(
            f"{tool.variable} is {wanted}, which is no program", hint="name a program that can be run, or unset it"
        )
    return str(Path(program).absolute())


async def build(tool: GoProgram, report: Report) -> Path:
    """Our own build of a tool, made now unless an earlier one is there; it takes a minute or so, once."""
    program = _built(tool)
    if program.exists():
        return program
    go = _find_go(tool)
    program.parent.mkdir(parents=True, exist_ok=True)
    lock = program.parent.with_name(f"{program.parent.name}.lock")
    async with locked(lock, lambda: report(f"waiting for a build of {tool.name} that runs elsewhere")):
        if not program.exists():
            await _compile(go, tool, program, report)
    return program


def _built(tool: GoProgram) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    return cache / "starling" / f"{tool.name}-{tool.version}" / tool.name


def _find_go(tool: GoProgram) -> str:
    if go := shutil.which("go"):
        return go
    raise ToolMissing(
        f"there is no {tool.alternative} on this machine, and no Go to build {tool.name} {tool.version} with",
        hint=(
            f"one of: install {tool.alternative} and have it on the PATH; set {tool.variable} to a program; "
            f"install Go {OLDEST_GO} or newer and have it on the PATH"
        ),
    )


async def _compile(go: str, tool: GoProgram, program: Path, report: Report) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "", "GOBIN": folder}
        command = (go, "install", "-v", "-trimpath", "-ldflags=-s -w", f"{tool.package}@{tool.version}")
        async with child(*command, environment=environment, cwd=Path(folder)) as process:
            complaints = await _follow(process, f"building {tool.name} {tool.version}", report)
            code = await process.wait()
        built = Path(folder, tool.name)
        if code != 0 or not built.exists():
            raise ToolMissing(
                f"{tool.name} {tool.version} can't be built: " + "\n".join(complaints[-20:]).strip(),
                hint=f"or install {tool.alternative} and have it on the PATH, or set {tool.variable} to a program",
            )
        built.replace(program)
    report(f"built {tool.name} {tool.version} in {time.monotonic() - started:.0f} s")


async def _follow(process: Process, title: str, report: Report) -> list[str]:
    """What Go says, which is a line for each package or download; how far it is, is reported once a second."""
    assert process.stderr
    lines: list[str] = []
    report(title)
    started = time.monotonic()

    async def tick() -> None:
        while True:
            await asyncio.sleep(REPORT_INTERVAL)
            report(f"{title}: {len(lines)} modules and packages, {time.monotonic() - started:.0f} s")

    ticker = asyncio.create_task(tick())
    try:
        while line := await process.stderr.readline():
            lines.append(line.decode(errors="replace").rstrip())
    finally:
        ticker.cancel()
    return lines
