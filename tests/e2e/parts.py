"""What a fleet is made of besides clusters: processes, and repositories that its server serves."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Repository", "Service"]


class Service:
    """A process of ours that runs until it is ended; what it says goes to a file."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    def kill(self) -> None:
        """End it the hard way, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def said(self) -> str:
        """All that it has logged."""
        return self.log.read_text(errors="replace")

    def has_said(self, text: str) -> bool:
        """Whether it has logged this."""
        return text in self.said


class Repository:
    """A git repository that the fleet's server serves."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("config", "user.name", "someone")
        self._git("config", "user.email", "someone@example.com")

    def commit(self, files: Mapping[str, str | None], tag: str = "") -> str:
        """The id of a commit in which these files are so, None being absent."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "a change")
        if tag:
            self._git("tag", tag)
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
