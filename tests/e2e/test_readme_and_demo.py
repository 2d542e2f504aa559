"""What the README tells a newcomer to type works."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_well_by_itself(environment: dict[str, str]) -> None:
    """With no terminal to wait for, the demo shows its clusters and kinds and leaves nothing behind."""
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
    assert "\x1b" not in done.stdout


def test_the_commands_to_try_by_hand(environment: dict[str, str]) -> None:
    """The block in the README runs as it stands: a Deployment becomes Available, and all is taken down again."""
    block = re.search(r"## Try it by hand\n+```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    lines = [line.removeprefix("$ ") for line in block[1].splitlines()]
    assert lines[0].startswith("make build"), "the first line is the set-up, which this test has behind it"
    script = "\n".join(["set -euo pipefail", *lines[1:]])
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deployment.apps/web condition met" in done.stdout
