"""What the README tells a newcomer to type works."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_well_by_itself(environment: dict[str, str]) -> None:
    """With no terminal to wait for, the demo tells its story and leaves nothing behind."""
    done = subprocess.run(
        ["bash", "examples/demo.sh"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"rolloutpolicy.starling.dev/safe", done.stdout)
    assert "must be a number of at least 1 (without quotes), or a percentage from 1% to 100%" in done.stderr
    assert re.search(r"- spec.replicas: 5\n\+ spec.replicas: 2\n", done.stdout)
    assert re.search(r"ReplicaSet.apps web/web-\w+ +Current", done.stdout)
    assert "\x1b" not in done.stdout


def test_the_commands_to_try_by_hand(environment: dict[str, str]) -> None:
    """The block in the README runs as it stands: a unit is applied, compared, and taken down again."""
    block = re.search(r"## Try it by hand\n+```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    lines = [line.removeprefix("$ ") for line in block[1].splitlines()]
    assert lines[0].startswith("make build"), "the first line is the set-up, which this test has behind it"
    script = "\n".join(["set -euo pipefail", *lines[1:]])
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit code 1: it differs" in done.stdout
    assert "Deployment.apps web/web deleted" in done.stdout
