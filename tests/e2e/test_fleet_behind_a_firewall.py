"""A cluster that nobody can connect to, in a network namespace with a way out and none in."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from starling.local import LocalClusters
from tests.e2e.fleets import HEARTBEAT, Fleet, Repository, config_map, environ, fleet_of, module, source

NAMESPACE = f"starling-{os.getpid()}"
INSIDE = ("ip", "netns", "exec", NAMESPACE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """A hub here, and a cluster called edge in there."""
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        with fleet_of(tmp_path_factory.mktemp("firewall"), {**environ(), **environment}) as fleet:
            subprocess.run([*INSIDE, "ip", "link", "set", "lo", "up"], check=True)
            fleet.up("hub")
            fleet.starling("install", "--kubeconfig", fleet.config("hub"))
            fleet.controller()
            inside(fleet, "starling", "local", "up", "edge")
            fleet.clusters["edge"] = LocalClusters(fleet.folder / "clusters").get("edge")
            yield fleet
    finally:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=True)


def inside(fleet: Fleet, *command: str, stdin: str = "") -> str:
    """What a command prints that is run in there."""
    done = subprocess.run(
        [*INSIDE, *command], env=fleet.environment, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


async def open_the_way_out(fleet: Fleet, *ports: int) -> None:
    """Have connections to these ports in there end up at the same ports here."""
    script = (sys.executable, "-m", "tests.e2e.one_way")
    for side, prefix in (("outside", ()), ("inside", INSIDE)):
        service = fleet.start(side, *prefix, *script, side, str(fleet.folder), *map(str, ports))
        await fleet.eventually(partial(service.has_said, "listening"), "a way out")


async def test_all_works_without_a_way_in(fleet: Fleet) -> None:
    """Enrolled by what the hub prints, it runs what it should, tells so, follows changes, and undoes drift."""
    edge, hub = fleet.clusters["edge"], fleet.clusters["hub"]
    address = fleet.git_server_in_background()
    url = await fleet.eventually(address, "the git server")
    await open_the_way_out(fleet, hub.port, int(url.rpartition(":")[2]))
    with socket.socket() as attempt:
        assert attempt.connect_ex(("127.0.0.1", edge.port)) != 0, "there is a way in"

    manifests = fleet.starling("enrol", "edge", "--labels", "site=edge", "--kubeconfig", fleet.config("hub"))
    # As the command says: the first time kubectl doesn't know the kinds yet that it has just made.
    await fleet.eventually(partial(applied, fleet, manifests), "what was printed being applied")
    where = ("--kubeconfig", str(edge.kubeconfig), "--data", str(fleet.folder / "data" / "edge"))
    options = ("--heartbeat", HEARTBEAT, "--no-leader-election", "--log-format", "text")
    fleet.start("agent-edge", *INSIDE, "starling", "agent", *where, *options)

    repository = Repository(fleet.repositories / "fleet", f"{url}/fleet/.git")
    repository.commit({"app/it.yaml": config_map("edge", version="1")})
    await fleet.apply("hub", source("fleet", repository.url), module("app", "app", selector={"site": "edge"}))
    await fleet.eventually(lambda: fleet.rolled_out("app"), "version 1")
    assert there(fleet) == {"version": "1"}
    repository.commit({"app/it.yaml": config_map("edge", version="2")})
    await fleet.eventually(lambda: there(fleet) == {"version": "2"}, "version 2")
    await fleet.eventually(lambda: fleet.rolled_out("app"), "the hub knowing of it")
    patch = ("patch", "configmap", "edge", "--type=merge", "-p", '{"data": {"version": "hacked"}}')
    inside(fleet, "starling", "local", "kubectl", "edge", *patch)
    await fleet.eventually(lambda: there(fleet) == {"version": "2"}, "drift put right")


def applied(fleet: Fleet, manifests: str) -> bool:
    """Whether kubectl takes manifests in there."""
    command = (*INSIDE, "starling", "local", "kubectl", "edge", "apply", "--server-side", "-f", "-")
    done = subprocess.run(command, env=fleet.environment, input=manifests, capture_output=True, text=True, check=False)
    return done.returncode == 0


def there(fleet: Fleet) -> Any:
    """What the ConfigMap holds in there; None if there is none."""
    got = ("get", "configmap", "edge", "-o", "json", "--ignore-not-found")
    found = inside(fleet, "starling", "local", "kubectl", "edge", *got)
    return json.loads(found)["data"] if found else None
