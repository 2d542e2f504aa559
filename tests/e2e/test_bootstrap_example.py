"""examples/bootstrap: a hub that keeps itself by git, a platform layer for every new cluster, and Modules on top."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.e2e.fleets import Fleet, Repository, environ, fleet_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "bootstrap"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """A hub on which Starling is installed, and two clusters that it doesn't know yet."""
    with fleet_of(tmp_path_factory.mktemp("fleet"), {**environ(), **environment}) as fleet:
        fleet.up("hub", "eu-1", "us-1")
        fleet.starling("install", "--kubeconfig", fleet.config("hub"), "--no-controller")
        fleet.controller()
        fleet.agent("hub")
        yield fleet


async def test_one_apply_then_commits(fleet: Fleet, repository: Repository) -> None:
    """bootstrap.yaml is all that is applied by hand; a cluster gets the layer, then what it serves; commits follow."""
    shutil.copytree(EXAMPLE / "repository", repository.folder, dirs_exist_ok=True)
    repository.commit({})
    documents = list(yaml.safe_load_all((EXAMPLE / "bootstrap.yaml").read_text()))
    documents[0]["spec"]["git"]["url"] = repository.url
    await fleet.apply("hub", *documents)
    for kind, name in (("RolloutPolicy", "careful"), ("SyncGroup", "platform"), ("Module", "web")):
        await fleet.eventually(partial(fleet.get, "hub", kind, name), f"{kind} {name}")
    for name, labels in (("eu-1", "region=eu,ring=canary,serves=web"), ("us-1", "region=us")):
        fleet.add(name, labels)
        fleet.agent(name)
    info = {name: {"cluster": name, "region": name[:2]} for name in ("eu-1", "us-1")}
    await fleet.eventually(lambda: fleet.has("cluster-info", info), "the platform layer on both")
    first = {"eu-1": {"greeting": "hello", "version": "1"}}
    await fleet.eventually(lambda: fleet.has("web", first, "web"), "the Module on the one that serves the web")
    assert await fleet.data("us-1", "web", "web") is None
    text = (repository.folder / "apps/web/web.yaml").read_text()
    extra = (repository.folder / "fleet/web.yaml").read_text().replace("name: web\n", "name: web-too\n", 1)
    repository.commit({"apps/web/web.yaml": text.replace('"1"', '"2"'), "fleet/more.yaml": extra})
    second = {"eu-1": {"greeting": "hello", "version": "2"}}
    await fleet.eventually(lambda: fleet.has("web", second, "web"), "a commit that changes what runs")
    await fleet.eventually(lambda: fleet.get("hub", "Module", "web-too"), "a commit that changes the fleet itself")
