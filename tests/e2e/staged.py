"""A fleet of six in two regions, each with a canary, and what people do to roll something out over it in stages."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.fleets import PLATFORM, Fleet, Repository, audit, config_map, fleet_of, module, ours, source
from tests.e2e.trails import Trail

__all__ = [
    "BAKE",
    "CANARIES",
    "CLUSTERS",
    "EU",
    "HEARTBEAT",
    "STAGES",
    "US",
    "comes_to",
    "crashing",
    "events",
    "everywhere",
    "manifests",
    "policy",
    "push",
    "rollout",
    "stage",
    "staged_fleet",
    "start",
    "trail",
    "wait",
]

CANARIES = ("eu-1", "us-1")
EU = ("eu-2", "eu-3")
US = ("us-2", "us-3")
CLUSTERS = (*CANARIES, *EU, *US)
STAGES = (CANARIES, EU, US)
PUSH = ("eu-1", "eu-2", "us-3")
BAKE = 3.0
HEARTBEAT = "10s"
"""With fourteen processes and more on a busy machine, none is to be taken for dead that is only late."""


@contextmanager
def staged_fleet(folder: Path, environment: Mapping[str, str], *, workloads: bool = False) -> Iterator[Fleet]:
    """A hub, and six clusters, half of them of either mode."""
    with fleet_of(folder, environment) as fleet:
        fleet.up("hub", audit=True)
        fleet.up(*CLUSTERS, workloads=workloads)
        fleet.starling("install", "--kubeconfig", fleet.config("hub"))
        fleet.controller()
        for name in CLUSTERS:
            join = fleet.add if name in PUSH else fleet.enrol
            join(name, f"region={name[:2]},ring={'canary' if name in CANARIES else 'main'}")
            fleet.agent(name, "--heartbeat", HEARTBEAT)
        yield fleet


def stage(name: str, labels: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """A stage of clusters with some labels."""
    return {"name": name, "selector": {"matchLabels": dict(labels)}, **more}


def policy(name: str, *, canary: Any = None, eu: Any = None, **more: Any) -> dict[str, Any]:
    """A RolloutPolicy: the canaries one by one, which bake, then eu, then the rest."""
    stages = [
        stage("canary", {"ring": "canary"}, **{"maxConcurrent": 1, "bake": f"{BAKE:g}s", **(canary or {})}),
        stage("eu", {"region": "eu"}, **(eu or {})),
    ]
    return ours("RolloutPolicy", name, {"stages": stages, "maxConcurrent": 2, "timeout": "2m", **more})


def manifests(name: str, version: str, image: str = "") -> str:
    """A Deployment that gets ready, of an image that is the version's own if none is said, and a ConfigMap."""
    return _app(name, version, image or version, labels={}, deadline=600)


def crashing(name: str, version: str) -> str:
    """The same with pods that crash, which it takes its Deployment some seconds to say."""
    return _app(name, version, version, labels={"starling.dev/crash": "yes"}, deadline=4)


def _app(name: str, version: str, image: str, *, labels: Mapping[str, str], deadline: int) -> str:
    pod = {"containers": [{"name": "it", "image": f"example.com/it:{image}"}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": deadline,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name, **labels}}, "spec": pod},
        },
    }
    return f"{config_map(name, version=version)}---\n{yaml.safe_dump(deployment)}"


def everywhere(version: str, *clusters: str) -> dict[str, dict[str, str]]:
    """What the ConfigMap says on each cluster."""
    return {name: {"version": version} for name in clusters or CLUSTERS}


def push(repository: Repository, name: str, text: str) -> str:
    """The commit by which a Module's folder has another content."""
    return repository.commit({f"{name}/it.yaml": text})


async def start(
    fleet: Fleet, repository: Repository, wanted: Mapping[str, Any], text: str = "", **more: Any
) -> dict[str, Any]:
    """Have a Module of the policy's name be at its first version everywhere; its status then.

    From now on it follows the policy.
    """
    name = wanted["metadata"]["name"]
    push(repository, name, text or config_map(name, version="1"))
    quickly = module(name, name, rollout={"maxConcurrent": "100%"}, **more)
    await fleet.apply("hub", source("fleet", repository.url), wanted, quickly)
    await fleet.eventually(lambda: fleet.has(name, everywhere("1")), f"the first version of {name}")
    await fleet.eventually(lambda: fleet.rolled_out(name), f"the end of {name}'s first rollout")
    await fleet.apply("hub", module(name, name, policyRef={"name": name}, **more))
    return await comes_to(fleet, name, "Succeeded")


async def comes_to(fleet: Fleet, name: str, phase: str, *, commit: str = "", says: str = "") -> dict[str, Any]:
    """The status of a Module once it is in a phase, if that matters, with a commit, and its message says so."""

    async def there() -> Any:
        found = await fleet.get("hub", "Module", name)
        status = found["status"]
        current = status["observedGeneration"] == found["metadata"]["generation"]
        at_it = current and phase in ("", status["phase"]) and status["revision"].endswith(commit)
        return status if at_it and says in _message(status) else None

    what = f"{name} being {phase} {says}"
    found: dict[str, Any] = await fleet.eventually(there, what)
    return found


def _message(status: Mapping[str, Any]) -> str:
    return str(next((each["message"] for each in status["conditions"] if each["type"] == "Ready"), ""))


async def rollout(fleet: Fleet, verb: str, name: str, *more: str) -> str:
    """What `starling rollout …` prints, which must succeed."""
    command = ("rollout", verb, name, *more, "--kubeconfig", fleet.config("hub"))
    return await asyncio.to_thread(fleet.starling, *command)


async def wait(fleet: Fleet, name: str, commit: str) -> tuple[int, str]:
    """How `starling rollout wait` ends, and what it says."""
    command = ("rollout", "wait", name, "--for-revision", commit, "--timeout", "2m")
    code, output, errors = await asyncio.to_thread(fleet.run, *command, "--kubeconfig", fleet.config("hub"))
    return code, output + errors


def trail(fleet: Fleet, name: str) -> Trail:
    """The way that a Module's versions took."""
    return Trail(audit(fleet.clusters["hub"]), name)


async def events(fleet: Fleet, name: str, reason: str) -> Sequence[str]:
    """What Events of a reason say of a Module."""
    path = f"/apis/events.k8s.io/v1/namespaces/{PLATFORM}/events"
    found = (await fleet.client("hub").raw("GET", path)).json()["items"]
    return [each["note"] for each in found if each["regarding"]["name"] == name and each["reason"] == reason]
