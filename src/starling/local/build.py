"""Building the control plane: one Go program that is all of Kubernetes' components, from the Go module proxy.

The result is kept under `$XDG_CACHE_HOME/starling`, in a folder named by Kubernetes' version and a digest of
the sources. Being interrupted leaves no half-made program there, and Go's own cache keeps what was compiled so
far.
"""

import asyncio
import hashlib
import os
import re
import shutil
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from starling.files import locked
from starling.local.errors import LocalError, ToolMissingError
from starling.programs import child

__all__ = ["build_control_plane"]

SOURCES = Path(__file__).parent / "control_plane"
SOURCE_FILES = ("main.go", "go.mod", "go.sum")
REPORT_INTERVAL = 1.0

Report = Callable[[str], None]


async def build_control_plane(report: Report, sources: Path = SOURCES) -> Path:
    """Give the program, built now unless an earlier build left it; builders elsewhere are waited for."""
    program = cached_program(sources)
    if program.exists():
        return program
    go = find_go(sources)
    program.parent.mkdir(parents=True, exist_ok=True)
    lock = program.parent.with_name(f"{program.parent.name}.lock")
    async with locked(lock, lambda: report("waiting for a build that runs elsewhere")):
        if not program.exists():
            await compile_program(go, sources, program, report)
    return program


def cached_program(sources: Path) -> Path:
    """Where the build of exactly these sources is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(b"\0".join((sources / name).read_bytes() for name in SOURCE_FILES)).hexdigest()
    folder = f"control-plane-{kubernetes_version(sources)}-{digest[:10]}"
    return cache.absolute() / "starling" / folder / "control-plane"


def kubernetes_version(sources: Path) -> str:
    """Give the version of Kubernetes that go.mod pins, such as v1.36.3."""
    return required(sources, r"^\s*k8s\.io/kubernetes (v\S+)$")


def go_version(sources: Path) -> str:
    """Give the oldest version of Go that can build it."""
    return required(sources, r"^go (\S+)$")


def required(sources: Path, pattern: str) -> str:
    """Give what the pattern finds in go.mod, which holds it."""
    found = re.search(pattern, (sources / "go.mod").read_text(), re.MULTILINE)
    assert found, pattern
    return found.group(1)


def find_go(sources: Path) -> str:
    """Give the path of Go, or say every way to do without."""
    if go := shutil.which("go"):
        return go
    raise ToolMissingError(
        f"there is no Go on this machine, which is needed to build Kubernetes {kubernetes_version(sources)} once",
        hint=(
            f"one of: install Go {go_version(sources)} or newer and have it on the PATH; "
            "set KUBEBUILDER_ASSETS to a folder that has etcd, kube-apiserver and kubectl, or have these on the PATH "
            "(--workloads needs kube-controller-manager, kube-scheduler and kwok as well); "
            "use clusters of your own (most commands take --kubeconfig)"
        ),
    )


async def compile_program(go: str, sources: Path, program: Path, report: Report) -> None:
    """Download, compile, link; the program appears under its name when it is whole."""
    version = kubernetes_version(sources)
    partial = program.with_suffix(".partial")
    started = time.monotonic()
    try:
        packages = await download(go, sources, report)
        command = [go, "build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", ldflags(version)]
        progress = Progress(report, f"compiling Kubernetes {version}", packages, "packages")
        async with run(sources, *command, "-o", str(partial), ".") as process:
            await progress.follow(process, lambda line: not line.startswith("go: "))
        partial.replace(program)
    finally:
        partial.unlink(missing_ok=True)
    report(f"built Kubernetes {version} in {time.monotonic() - started:.0f} s")


async def download(go: str, sources: Path, report: Report) -> int:
    """Fetch the modules that are needed; give how many packages are to be compiled at most."""
    modules = sum("/go.mod " not in line for line in (sources / "go.sum").read_text().splitlines())
    title = f"downloading the sources of Kubernetes {kubernetes_version(sources)}"
    progress = Progress(report, title, modules, "modules")
    async with run(sources, go, "list", "-mod=readonly", "-deps", ".") as process:
        listing = await progress.follow(process, lambda line: line.startswith("go: downloading "))
    return listing.count(b"\n")


def ldflags(version: str) -> str:
    """Give the linker flags: no debug information, and the version that kubectl and clients ask for."""
    major, minor = version.removeprefix("v").split(".")[:2]
    variables = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    settings = (f"-X {package}.{name}={value}" for package in packages for name, value in variables.items())
    return " ".join(["-s", "-w", *settings])


def run(sources: Path, *command: str) -> AbstractAsyncContextManager[Process]:
    """Run Go in the sources' folder; it ends, and all that it started, when the block does."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    return child(*command, cwd=sources, environment=environment)


class Progress:
    """Counts the lines that say something is done, and reports how far it is, once a second."""

    def __init__(self, report: Report, title: str, total: int, unit: str) -> None:
        self.report = report
        self.title = title
        self.total = total
        self.unit = unit
        self.done = 0

    async def follow(self, process: Process, counts: Callable[[str], bool]) -> bytes:
        """Give what Go wrote to its standard output, when it is done; raise what it complained about."""
        assert process.stdout
        ticker = asyncio.create_task(self._tick())
        try:
            output, complaints = await asyncio.gather(process.stdout.read(), self._count(process, counts))
        finally:
            ticker.cancel()
        if await process.wait() != 0:
            raise LocalError(f"{self.title} failed: " + "\n".join(complaints[-20:]).strip())
        return output

    async def _tick(self) -> None:
        self.report(self.title)
        started = time.monotonic()
        while True:
            await asyncio.sleep(REPORT_INTERVAL)
            elapsed = time.monotonic() - started
            self.report(f"{self.title}: {self.done} of {self.total} {self.unit}, {elapsed:.0f} s")

    async def _count(self, process: Process, counts: Callable[[str], bool]) -> list[str]:
        assert process.stderr
        lines: list[str] = []
        async for line in process.stderr:
            lines.append(line.decode(errors="replace").rstrip())
            self.done += counts(lines[-1])
        return lines
