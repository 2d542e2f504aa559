"""The example agent keeps a cluster the way a folder says, and ends when told to."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Starling
from tests.waiting import until

AGENT = Path(__file__).parents[2] / "examples" / "engine-agent" / "agent.py"
Ask = Callable[..., str]


def config_map(name: str, value: str) -> str:
    """A manifest."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: {value}}}\n"


@pytest.fixture(scope="module")
def kubeconfig(starling: Starling) -> str:
    """A bare cluster's."""
    up = starling("local", "up", "agent")
    assert up.returncode == 0, up.stderr
    return up.stdout.strip()


@pytest.fixture
def ask(kubectl: list[str], kubeconfig: str) -> Ask:
    """What kubectl says; nothing if it fails."""

    def run(*arguments: str) -> str:
        command = [*kubectl, "--kubeconfig", kubeconfig, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two manifests, one in a folder within."""
    (tmp_path / "more").mkdir()
    (tmp_path / "stays.yaml").write_text(config_map("stays", "one"))
    (tmp_path / "more" / "goes.yaml").write_text(config_map("goes", "one"))
    return tmp_path


@pytest.fixture
def agent(environment: dict[str, str], kubeconfig: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """The agent at work on the folder."""
    command = [sys.executable, str(AGENT), str(folder), "--kubeconfig", kubeconfig, "--every", "0.1"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield process
    process.kill()
    process.communicate()


def test_it_is_short() -> None:
    """Under a hundred lines, or it is no example."""
    assert len(AGENT.read_text().splitlines()) < 100


async def test_the_folder_is_the_cluster(agent: "subprocess.Popen[str]", folder: Path, ask: Ask) -> None:
    """Applied, changed, pruned, repaired; SIGTERM ends it in peace."""
    value = ("get", "configmap", "-o", "jsonpath={.data.value}")
    await until(lambda: ask(*value, "stays") == "one" and ask(*value, "goes") == "one")

    (folder / "stays.yaml").write_text(config_map("stays", "two"))
    await until(lambda: ask(*value, "stays") == "two")

    (folder / "more" / "goes.yaml").unlink()
    await until(lambda: not ask("get", "configmap", "goes", "-o", "name"))
    assert ask(*value, "stays") == "two"

    ask("patch", "configmap", "stays", "-p", '{"data": {"value": "drift"}}')
    await until(lambda: ask(*value, "stays") == "two")
    await until(lambda: "stays" in ask("get", "configmap", "starling-agent", "-o", "jsonpath={.data.inventory}"))

    agent.send_signal(signal.SIGTERM)
    said, _ = agent.communicate(timeout=30)
    assert agent.returncode == 0, said
    assert "ConfigMap default/stays changed: drifted" in said
    assert "ConfigMap default/goes pruned: no longer in the manifests" in said
    assert "Traceback" not in said
