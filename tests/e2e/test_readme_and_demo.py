"""What the README tells a newcomer to type works."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(1200)  # five clusters, and a machine that may have other things to do

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_well_by_itself(environment: dict[str, str]) -> None:
    """With no terminal to wait for, the demo tells its story and leaves nothing behind."""
    done = run(["bash", "examples/demo.sh"], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    tables = re.findall(r"^\$ starling get\n((?:[^\n]+\n)+)", done.stdout, re.MULTILINE)
    assert [[line.split()[3:] for line in table.splitlines()[1:5]] for table in tables] == [
        both(base, web) for base, web in (("v1.0.0", "v1.0.0"), ("v1.1.0", "v1.0.0"), ("v1.1.0", "v1.2.0"))
    ]
    assert done.stderr.count("4 clusters (4 ready); 2 modules (2 succeeded); 6 ok") == len(tables)
    assert '"greeting":"hello from edge-2 in us"' in done.stdout
    admitted = re.findall(r"Admitted +(\S+) may move to v1.1.0@", done.stdout)
    assert admitted == ["us-1", "eu-1", "edge-2", "edge-1"], "the newest first, and each by itself"
    assert "put right apps/Deployment/web/web: spec.replicas, changed by kubectl" in done.stdout
    healed = done.stdout.partition("$ kill -KILL")[2]
    assert re.search(r"deployment.apps \"web\" deleted(.|\n)*^web +2/2 ", healed, re.MULTILINE)
    assert "\x1b" not in done.stdout


def both(base: str, web: str) -> list[list[str]]:
    """What `starling get` says of both Modules on edge-1, edge-2, eu-1 and us-1, when all is well."""
    return [[base, "ok", web, "ok"], [base, "ok", "-"]] * 2


def test_a_fleet_in_ten_commands(environment: dict[str, str]) -> None:
    """The blocks in the README run as they stand: a push and a pull cluster get what labels say, and are kept so."""
    lines = commands("A fleet in ten commands")
    assert next(number for number, line in enumerate(lines) if " wait " in line) == 10
    # Whatever happens, processes that were started are ended: they would keep our end of the pipe open.
    done = script(["trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *lines], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^a +Ready +Active +v1.0.0 ok +v1.0.0 ok$", done.stdout, re.MULTILINE)
    assert re.search(r"^b +Ready +Active +v1.0.0 ok +-$", done.stdout, re.MULTILINE)
    assert "configmap/cluster-info patched" in done.stdout


def test_the_engine_by_hand(environment: dict[str, str]) -> None:
    """The block in the README runs as it stands: a unit is applied, compared, and taken down again."""
    done = script(commands("Try the engine by hand"), environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit code 1: it differs" in done.stdout
    assert "Deployment.apps web/web deleted" in done.stdout


def commands(section: str) -> list[str]:
    """What a section of the README has people type."""
    text = (ROOT / "README.md").read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def script(lines: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run lines as someone types them, but for the first that fails, after which there is no other."""
    return run(["bash", "-c", "\n".join(["set -euo pipefail", *lines])], environment)


def run(command: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command, with nobody at the terminal."""
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
