"""Real kustomize and helm, of the versions that we build, and a server that tells whether anyone asked it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from starling.rendering import Renderer, Tools
from tests.integration.third_party import helm, kustomize


@pytest.fixture(scope="session")
def tools() -> Tools:
    """The pinned tools; built now if need be."""
    return Tools((str(kustomize()), "build"), (str(helm()),))


@pytest.fixture
async def renderer(tools: Tools, tmp_path: Path) -> Renderer:
    """A renderer whose runs have their folders in one that can be looked at."""
    scratch = tmp_path / "runs"
    scratch.mkdir()
    return Renderer(tools, scratch=scratch)


class Web:
    """An HTTP server on this machine that serves what is put in `files`, and remembers all that was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                content = web.files.get(self.path.partition("?")[0])
                self.send_response(200 if content is not None else 404)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    """A server of the test's own."""
    server = Web()
    yield server
    server.close()
