"""A hub where a test writes what the controllers would, and commands that run meanwhile."""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starling.api import KINDS, Module
from starling.api.orders import ORDER, Order, parse_order
from starling.kube import Client, Ref, Resource
from tests.waiting import until

__all__ = ["COMMITS", "T1", "T2", "Hub", "Running", "condition"]

T1, T2 = "t1:" + "1" * 64, "t1:" + "2" * 64
COMMITS = {T1: "a" * 40, T2: "b" * 40}
TAGS = {T1: "v1.1.0", T2: "v1.2.0"}
REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)

Json = dict[str, Any]


def condition(message: str) -> Json:
    """Where a rollout stands."""
    return {
        "type": "Ready", "status": "False", "reason": "Progressing", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip


@dataclass(frozen=True)
class Running:
    """A command at work."""

    process: asyncio.subprocess.Process

    async def says(self, text: str, *, on_stdout: bool = False) -> str:
        """The next line that has this text."""
        stream = self.process.stdout if on_stdout else self.process.stderr
        assert stream is not None
        async with asyncio.timeout(120):
            while line := (await stream.readline()).decode():
                if text in line:
                    return line.rstrip("\n")
        raise AssertionError(f"never said: {text}")

    async def ends(self) -> tuple[int, str, str]:
        """Its exit code, and the rest of what it said on stdout and on stderr."""
        async with asyncio.timeout(120):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)


@dataclass(frozen=True)
class Hub:
    """A namespace of a hub. Mutable: what was `started` there."""

    client: Client
    kubeconfig: str
    namespace: str
    environment: Mapping[str, str]
    started: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, *arguments: str) -> Running:
        """Start a command on this hub and namespace."""
        where = ("--kubeconfig", self.kubeconfig, "-n", self.namespace)
        process = await asyncio.create_subprocess_exec(
            *("starling", *arguments, *where),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.started.append(process)
        return Running(process)

    async def end(self) -> None:
        """End what still runs, as after a test that failed."""
        for process in self.started:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; its exit code, stdout and stderr."""
        return await (await self.start(*arguments)).ends()

    def ref(self, kind: str = "modules", name: str = "web") -> Ref:
        """One of our objects."""
        resources = (each.declaration.resource for each in KINDS)
        return next(each for each in resources if each.plural == kind).ref(name, self.namespace)

    async def put(self, kind: str, name: str, spec: Json, status: Json | None = None, **metadata: Any) -> None:
        """Have an object so."""
        ref = self.ref(kind, name)
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": ref.resource.kind,
            "metadata": {"name": name, "namespace": self.namespace, **metadata},
        }
        await self.client.apply(ref, {**body, "spec": spec}, manager="test")
        if status is not None:
            await self.client.merge_patch(ref.status, {"status": status}, manager="test")

    async def put_module(self, rollout: Json | None = None, **status: Any) -> Module:
        """Have the Module web, rolled out so, and at the second target with what else its status says."""
        sync = {"source": {"name": "platform"}, "path": "./web"}
        await self.put("modules", "web", {"selector": {}, "sync": sync, "rollout": rollout or {}})
        return await self.say(**{"phase": "Progressing", "target": T2, "lastGood": T1, **status})

    async def get(self) -> Module:
        """The Module as it is."""
        return (await self.client.get(self.ref())).decode(Module)

    async def say(self, message: str = "1 of 3 clusters are at the target", **status: Any) -> Module:
        """Have the Module's status say this, of the Module as it is unless another generation is said."""
        module = await self.get()
        target = status.get("target", module.status.target)
        said = {
            "observedGeneration": module.metadata.generation,
            "conditions": [condition(message)],
            "revision": f"{TAGS[target]}@sha1:{COMMITS[target]}",
            **status,
        }
        return (await self.client.merge_patch(self.ref().status, {"status": said}, manager="test")).decode(Module)

    async def put_history(self, *targets: str) -> None:
        """Have the Module's history, the oldest first."""
        module = await self.get()
        owner = {"apiVersion": "starling.dev/v1alpha1", "kind": "Module", "name": "web", "uid": module.metadata.uid}
        stranger = {**owner, "uid": "of-one-that-was-deleted"}
        all_of_them = [(target, owner) for target in targets] + [("t1:other", stranger)]
        for number, (target, whose) in enumerate(all_of_them, 1):
            body = {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": f"web-{number}",
                    "namespace": self.namespace,
                    "labels": {"starling.dev/module": "web"},
                    "ownerReferences": [whose],
                },
                "revision": number,
                "data": {
                    "target": target,
                    "revision": f"{TAGS.get(target, 'v0')}@sha1:{COMMITS.get(target, 'c' * 40)}",
                },
            }
            await self.client.create(REVISIONS, body, namespace=self.namespace)

    async def ordered(self, after: Order | None = None) -> Order:
        """The order that someone gives, once it is there; another one than the one before."""

        async def there() -> Order | None:
            order = parse_order((await self.get()).metadata.annotations.get(ORDER, ""))
            return order if order != after else None

        found = await until(there)
        assert found is not None
        return found
