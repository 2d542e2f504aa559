"""Go programs that stand for the reference: built for a test, one process for all of its questions."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["GoProgram", "go_program"]


class GoProgram:
    """A process that reads a question a line and writes an answer in JSON a line."""

    def __init__(self, binary: Path) -> None:
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, question: Any) -> Any:
        """The answer to a value, which is sent as JSON, or to bytes, which are sent as they are."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = question if isinstance(question, bytes) else json.dumps(question, ensure_ascii=False).encode()
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process by closing its input."""
        self._process.communicate(timeout=30)


@contextmanager
def go_program(name: str, folders: pytest.TempPathFactory) -> Iterator[GoProgram]:
    """The program of that folder here; without Go a test fails rather than prove nothing."""
    tool = shutil.which("go")
    assert tool, f"this test needs Go to build tests/integration/{name}"
    binary = folders.mktemp(name) / name
    sources = Path(__file__).parent / name
    subprocess.run([tool, "build", "-mod=readonly", "-o", binary, "."], cwd=sources, check=True)
    program = GoProgram(binary)
    yield program
    program.close()
