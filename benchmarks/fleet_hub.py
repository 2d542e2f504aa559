"""What both fleet benchmarks stand on: a hub with our kinds, its controller as a process of its own, and what it costs.

CPU time, memory and sockets are read from /proc, writes from the API server's own metrics: neither slows the run.
"""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from starling.api import PLATFORM_NAMESPACE
from starling.api.crds import KINDS, crds
from starling.kube import Client, NotServed
from starling.local import LocalCluster
from starling.objects import GroupVersionKind

__all__ = [
    "Process",
    "Repository",
    "Writes",
    "apply_all",
    "child",
    "controller",
    "installed",
    "namespace",
    "number",
    "ours",
    "requests",
    "until",
]

AT_ONCE: Final = 16
WITHIN: Final = 1800.0
"""Seconds after which a fleet that doesn't get there is a failure, not a figure."""

_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_COUNTER: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


def told(what: str) -> None:
    """Tell how far a benchmark of several minutes is."""
    print(f"  {time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def number(name: str, default: int) -> int:
    """A size from the environment, so that a benchmark can be tried small."""
    return int(os.environ.get(f"STARLING_BENCH_{name}", default))


class Process:
    """A process as /proc tells of it."""

    def __init__(self, pid: int) -> None:
        self._folder = Path("/proc") / str(pid)

    def cpu_seconds(self) -> float:
        """CPU time that it and the children it has waited for (git) have used."""
        fields = (self._folder / "stat").read_text().rpartition(") ")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """VmRSS now, in bytes."""
        return self._status("VmRSS")

    def peak(self) -> int:
        """The most that VmRSS ever was."""
        return self._status("VmHWM")

    def connections(self, port: int) -> int:
        """Its established connections to a port."""
        lines = (self._folder / "net" / "tcp").read_text().splitlines()[1:]
        remote = f":{port:04X}"
        inodes = {f"socket:[{row[9]}]" for row in map(str.split, lines) if row[2].endswith(remote) and row[3] == "01"}
        return sum(_points_to(each) in inodes for each in (self._folder / "fd").iterdir())

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+) kB$", (self._folder / "status").read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024


def _points_to(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""


class Repository:
    """A bare git repository with one folder for each Module, on branch main; its objects may name a namespace."""

    def __init__(self, folder: Path, modules: int, namespace: str = "") -> None:
        self.folder = folder
        self._namespace = f"  namespace: {namespace}\n" if namespace else ""
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "-b", "main", ".")
        self._commit(b"", {f"module-{index}": "version 0" for index in range(modules)})

    def commit(self, versions: Mapping[str, str]) -> None:
        """Have other versions of some Modules."""
        self._commit(b"from refs/heads/main^0\n", versions)

    def head(self) -> str:
        """The id of the newest commit."""
        return self._git("rev-parse", "main").decode().strip()

    def _commit(self, onto: bytes, versions: Mapping[str, str]) -> None:
        stream = b"commit refs/heads/main\ncommitter a <a@example.org> 0 +0000\ndata 8\na change\n" + onto
        for name, version in versions.items():
            text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{self._namespace}"
            text += f"data:\n  version: {version}\n"
            stream += f"M 100644 inline {name}/config.yaml\ndata {len(text)}\n{text}\n".encode()
        self._git("fast-import", "--quiet", feed=stream)

    def _git(self, *arguments: str, feed: bytes = b"") -> bytes:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.folder, input=feed, check=True, capture_output=True).stdout


class Writes(Counter[str]):
    """Writes by what was written, such as "APPLY modules/status"; the difference of two is what came between."""

    @classmethod
    async def read(cls, client: Client) -> "Writes":
        """All that the API server has done so far; refused ones are marked so, Events left out."""
        found = cls()
        for labels, value in _COUNTER.findall((await client.raw("GET", "/metrics")).raw.decode()):
            said = dict(_LABEL.findall(labels))
            if said["verb"] in _WRITES and said["resource"] != "events":
                name = f"{said['verb']} {said['resource']}"
                name += f"/{said['subresource']}" if said["subresource"] else ""
                found[name if said["code"].startswith("2") else f"{name} ({said['code']})"] += round(float(value))
        return found

    def since(self, before: "Writes") -> "Writes":
        """What was written in between."""
        return Writes(self - before)

    def but(self, resource: str) -> "Writes":
        """Those of other resources."""
        return Writes({name: count for name, count in self.items() if name.split()[1] != resource})

    def per(self, clusters: int) -> str:
        """The largest of them for each of so many clusters."""
        parts = (f"{count / clusters:.2f} {name}" for name, count in self.most_common() if count >= clusters / 100)
        return ", ".join(parts)


async def requests(client: Client) -> int:
    """How many requests an API server has answered so far, watches aside."""
    found = _COUNTER.findall((await client.raw("GET", "/metrics")).raw.decode())
    return sum(round(float(value)) for labels, value in found if 'verb="WATCH"' not in labels)


@asynccontextmanager
async def child(log: Path, *arguments: str) -> AsyncIterator[Process]:
    """`python -m …` as a process that is ended with the block; it must not end before."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *arguments, stdout=output, stderr=output, stdin=asyncio.subprocess.DEVNULL
        )
    try:
        yield Process(process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        else:
            print(f"{arguments[0]} ended by itself:\n{log.read_text()[-2000:]}", file=sys.stderr)


@asynccontextmanager
async def controller(cluster: LocalCluster) -> AsyncIterator[Process]:
    """`starling controller` on a hub, as people run it; but for leader election, which a crowded machine may lose."""
    folder = cluster.folder.parent / "controller"
    folder.mkdir()
    options = (
        "--kubeconfig",
        str(cluster.kubeconfig),
        "--data",
        str(folder / "data"),
        "--log-format",
        "text",
        "--no-leader-election",
    )
    async with child(folder / "log", "starling", "controller", *options) as process:
        yield process


async def installed(client: Client) -> None:
    """Have our kinds on a server, ready to be used."""
    await apply_all(client, [*crds(), namespace(PLATFORM_NAMESPACE)])

    async def served() -> bool:
        try:
            for kind in KINDS:
                declared = kind.declaration
                await client.discovery.resource(GroupVersionKind(declared.group, declared.version, declared.kind))
        except NotServed:
            return False
        return True

    await until(served)


async def apply_all(client: Client, documents: Iterable[Mapping[str, Any]]) -> None:
    """Have objects so, several at once; what comes first must not need what comes later."""
    left = iter(documents)

    async def worker() -> None:
        for each in left:
            kind = GroupVersionKind.from_api_version(each["apiVersion"], each["kind"])
            resource = await client.discovery.resource(kind)
            metadata = each["metadata"]
            ref = resource.ref(metadata["name"], metadata["namespace"] if resource.namespaced else "")
            await client.apply(ref, each, manager="someone")

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def until(true: Callable[[], Awaitable[bool]], *, look_every: float = 0.1) -> None:
    """Wait until something has come true."""
    async with asyncio.timeout(WITHIN):
        while not await true():
            await asyncio.sleep(look_every)


def ours(kind: str, name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    """An object of one of our kinds."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "starling.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def namespace(name: str) -> dict[str, Any]:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
