"""The example agent keeps a cluster the way a folder says, tells what keeps it from that, and ends when told to."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starling.local import LocalClusters
from tests.e2e.conftest import Starling
from tests.integration.engine.traffic import traffic
from tests.waiting import until

AGENT = Path(__file__).parents[2] / "examples" / "engine-agent" / "agent.py"
Ask = Callable[..., str]
Process = subprocess.Popen[bytes]


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
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what the agent says is written."""
    return tmp_path_factory.mktemp("said") / "output"


@pytest.fixture
def start(environment: dict[str, str], folder: Path, said: Path) -> Iterator[Callable[[str], Process]]:
    """Starts the agent on the folder, with a kubeconfig."""
    started: list[Process] = []

    def run(kubeconfig: str) -> Process:
        command = [sys.executable, str(AGENT), str(folder), "--kubeconfig", kubeconfig, "--every", "0.1"]
        with said.open("wb") as output:
            started.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_it_is_short() -> None:
    """Under a hundred lines, or it is no example."""
    assert len(AGENT.read_text().splitlines()) < 100


async def test_the_folder_is_the_cluster(
    start: Callable[[str], Process], kubeconfig: str, folder: Path, said: Path, ask: Ask
) -> None:
    """Applied, changed, pruned, repaired; SIGTERM ends it in peace."""
    agent = start(kubeconfig)
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
    assert agent.wait(timeout=30) == 0, said.read_text()
    assert "ConfigMap default/stays changed: drifted" in said.read_text()
    assert "ConfigMap default/goes pruned: no longer in the manifests" in said.read_text()
    assert "Traceback" not in said.read_text()


async def test_what_is_wrong_is_told(
    start: Callable[[str], Process], kubeconfig: str, folder: Path, said: Path
) -> None:
    """A broken file, a folder that was emptied: each is told once, with the way out; and that it is over."""
    agent = start(kubeconfig)
    await until(lambda: "ConfigMap default/goes" in said.read_text())
    (folder / "stays.yaml").write_text("a: [\n")
    await until(lambda: "stays.yaml:2 (document 1): did not find" in said.read_text())
    (folder / "more" / "goes.yaml").unlink()
    (folder / "stays.yaml").unlink()
    await until(lambda: "wrong: this would delete everything agent/" in said.read_text())
    (folder / "stays.yaml").write_text(config_map("stays", "one"))
    await until(lambda: "nothing is wrong any more" in said.read_text())
    agent.send_signal(signal.SIGINT)
    assert agent.wait(timeout=30) == 0, said.read_text()
    assert "; is the path right?" in said.read_text()
    words = [line.split()[0] for line in said.read_text().splitlines() if not line.startswith("ConfigMap")]
    assert words == ["wrong:", "wrong:", "nothing"]


async def test_a_cluster_that_goes_away(
    start: Callable[[str], Process], environment: dict[str, str], kubeconfig: str, folder: Path, said: Path
) -> None:
    """That nobody answers any more is told."""
    del kubeconfig  # it is up
    async with traffic(LocalClusters(Path(environment["STARLING_LOCAL_DIR"])).get("agent")) as way:
        config = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": ""}}],
            "clusters": [{"name": "it", "cluster": {"server": (await way.access()).server}}],
        }
        (folder / "through").write_text(json.dumps(config))
        (folder / "stays.yaml").write_text(config_map("stays", "through"))
        start(str(folder / "through"))
        await until(lambda: "ConfigMap default/stays" in said.read_text())
    # What was under way may have been cut off; what is asked after that meets nobody.
    await until(lambda: "wrong: " in said.read_text() and "is the API server up" in said.read_text())


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is named, and the exit code is one."""
    nowhere = tmp_path / "nowhere"
    command = [sys.executable, str(AGENT), str(nowhere)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert f"there is no folder {nowhere}" in done.stderr
