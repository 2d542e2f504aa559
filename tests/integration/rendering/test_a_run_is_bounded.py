"""A run of a tool has a folder of its own, limits, and leaves nothing."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from starling.rendering import Cache, Limits, Renderer, RenderError, Request, ToolFailed, Tools
from tests.unit.rendering.trees import config_map, planted
from tests.waiting import until

TREE = {
    "app/kustomization.yaml": "resources: [a.yaml]",
    "app/a.yaml": config_map("a"),
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "chart/templates/a.yaml": config_map("a"),
    "plain/a.yaml": config_map("a"),
}


def script(place: Path, text: str) -> Tools:
    """A tool that does this, whatever it is asked for."""
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return Tools((str(place), "build"), (str(place),))


@pytest.mark.parametrize("path", ["app", "chart"])
async def test_time(tmp_path: Path, path: str) -> None:
    """What takes too long is ended, with all that it started, and the message says how long that was."""
    tools = script(tmp_path / "tool", f"/bin/sleep 600 & echo $! > {tmp_path}/pid; wait")
    root = planted(tmp_path / "tree", TREE)
    with pytest.raises(ToolFailed, match=rf"tool took more than 0\.5 s for {path} and was ended"):
        await Renderer(tools, limits=Limits(seconds=0.5)).render(root, None, Request(path=path))
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}/exe").exists() or not os.path.lexists(f"/proc/{pid}/cwd"))


@pytest.mark.parametrize("path", ["app", "chart"])
async def test_output(tmp_path: Path, path: str) -> None:
    """What writes without end is ended."""
    tools = script(tmp_path / "tool", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    root = planted(tmp_path / "tree", TREE)
    with pytest.raises(ToolFailed, match=rf"tool wrote more than 100000 bytes for {path} and was ended"):
        await Renderer(tools, limits=Limits(size=100_000)).render(root, None, Request(path=path))


async def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    """The tool is named, not the temporary folder."""
    root = planted(tmp_path / "tree", TREE)
    with pytest.raises(RenderError, match="kustomize can't be run: No such file or directory"):
        await Renderer(Tools(("/nowhere/kustomize", "build"))).render(root, None, Request(path="app"))
    with pytest.raises(RenderError, match="kustomize can't be run"):
        await Renderer(Tools(("/nowhere/kustomize", "build"))).render(root, "sha256:1", Request(path="app"))


async def test_nothing_is_left_and_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run sees nothing of our environment, starts in a folder of its own, and that is gone afterwards."""
    monkeypatch.setenv("STARLING_TEST_SECRET", "hunter2")
    monkeypatch.setenv("https_proxy", "http://user:hunter2@proxy.example")
    seen, runs = tmp_path / "seen", tmp_path / "runs"
    runs.mkdir()
    tools = script(tmp_path / "tool", f"/usr/bin/env > {seen}; pwd >> {seen}; echo '{{}}' > left; exit 1")
    root = planted(tmp_path / "tree", TREE)
    renderer = Renderer(tools, scratch=runs)
    for path in ("app", "chart"):
        with pytest.raises(ToolFailed):
            await renderer.render(root, None, Request(path=path, values=[{"a": "b"}] if path == "chart" else []))
        text = seen.read_text()
        assert "hunter2" not in text
        assert text.splitlines()[-1].startswith(f"{runs}/")
        assert list(runs.iterdir()) == []
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == sorted(TREE)


async def test_a_tree_that_nobody_may_write_to(renderer: Renderer, tmp_path: Path) -> None:
    """Checkouts are shared: everything renders though nothing in them can be written."""
    root = planted(tmp_path / "tree", TREE)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        for path in ("app", "chart", "plain", "plain/a.yaml"):
            rendered = await renderer.render(root, "sha256:1", Request(path=path))
            assert [manifest.name for manifest in rendered.manifests] == ["a"]
    finally:
        for folder in folders:
            folder.chmod(0o755)


async def test_few_run_at_once(tmp_path: Path) -> None:
    """However many different things are wanted, so many tools run at a time as may."""
    log = tmp_path / "log"
    text = f"echo start >> {log}; /bin/sleep 0.05; echo end >> {log}; /bin/cat $4/a.yaml"
    tools = script(tmp_path / "tool", text)
    files = {
        f"{number}/{name}": TREE[f"app/{name}"] for number in range(8) for name in ("kustomization.yaml", "a.yaml")
    }
    root = planted(tmp_path / "tree", files)
    renderer = Renderer(tools, cache=Cache(), at_once=2)
    await asyncio.gather(*(renderer.render(root, "sha256:1", Request(path=str(number))) for number in range(8)))
    running, most = 0, 0
    for line in log.read_text().splitlines():
        running += 1 if line == "start" else -1
        most = max(most, running)
    assert (running, most) == (0, 2)


def test_a_tool_is_built_once(tmp_path: Path) -> None:
    """Two processes that need kustomize at the same time build it once; what is there is whole."""
    go_cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    around = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "GOCACHE": go_cache}
    code = (
        "import asyncio; from starling.rendering.tools import KUSTOMIZE, build; "
        "print(asyncio.run(build(KUSTOMIZE, lambda text: print('said', text))))"
    )
    command = [sys.executable, "-c", code]
    builders = [subprocess.Popen(command, env=around, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [builder.communicate(timeout=280)[0] for builder in builders]
    program = tmp_path / "starling/kustomize-v5.8.1/kustomize"
    assert [text.splitlines()[-1] for text in said] == [str(program)] * 2
    assert sum("said built kustomize" in text for text in said) == 1
    assert sum("waiting for a build" in text for text in said) == 1
    assert [path.name for path in program.parent.iterdir()] == ["kustomize"]
    assert subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout == "v5.8.1\n"
