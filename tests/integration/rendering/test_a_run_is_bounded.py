"""A run of a tool has a folder of its own, limits, and leaves nothing."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from starling.programs import run
from starling.rendering import Cache, Limits, Renderer, RenderError, Request, ToolFailed, Tools
from starling.rendering.archives import packed
from starling.rendering.charts import list_chart
from starling.rendering.running import bounded
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


async def test_memory(renderer: Renderer, tmp_path: Path) -> None:
    """A template that makes a text without end gets no memory for it, and the message says so."""
    text = '{{ $x := repeat 1500000000 "a" }}{{ len $x }}'
    root = planted(tmp_path / "tree", {**TREE, "chart/templates/b.yaml": text})
    with pytest.raises(ToolFailed, match=r"^helm wanted more than 1073741824 bytes of memory for chart and was ended$"):
        await renderer.render(root, None, Request(path="chart"))
    renderer.limits = Limits(memory=300 << 20)
    (root / "chart/templates/b.yaml").write_text(text.replace("15", "2"))
    assert (await renderer.render(root, None, Request(path="app"))).manifests
    with pytest.raises(ToolFailed, match=r"^helm wanted more than 314572800 bytes of memory for chart"):
        await renderer.render(root, None, Request(path="chart"))


@pytest.mark.parametrize("prlimit", [shutil.which("prlimit"), None])
async def test_how_memory_is_bounded(prlimit: str | None) -> None:
    """With prlimit or without, what runs has the limit, its arguments, and nothing more in its environment."""
    command = ("/bin/sh", "-c", 'ulimit -v; echo "$0" "$1"; exit 3', "a b", "$c")
    done = await run(*bounded(command, 1 << 30, prlimit), environment={}, within=10)
    assert (done.code, done.output.decode()) == (3, f"{2 << 20}\na b $c\n")
    done = await run(*bounded(("/usr/bin/env",), 1 << 30, prlimit), environment={"A": "1"}, within=10)
    assert [line for line in done.output.decode().split() if line != "SHLVL=0"] == ["A=1"]


DIAMOND = {
    f"c{level}{side}/Chart.yaml": f"apiVersion: v2\nname: c{level}{side}\nversion: 1.0.0\ndependencies:\n"
    + "".join(
        f"- {{name: c{level + 1}{other}, version: 1.0.0, repository: 'file://../c{level + 1}{other}'}}\n"
        for other in "ab"
        if level < 30
    )
    for level in range(31)
    for side in "ab"
}


@pytest.mark.parametrize(("start", "problem"), [(0, "c8a/Chart.yaml: charts depend"), (23, "takes more than 200")])
async def test_charts_that_multiply(renderer: Renderer, tmp_path: Path, start: int, problem: str) -> None:
    """Charts of which each depends on two take no time, and are refused before any is written."""
    root = planted(tmp_path / "tree", DIAMOND)
    with pytest.raises(RenderError, match=problem):
        await renderer.render(root, None, Request(path=f"c{start}a"))


async def test_few_charts_in_a_diamond(renderer: Renderer, tmp_path: Path) -> None:
    """A chart that two others depend on is no fault."""
    root = planted(tmp_path / "tree", {**DIAMOND, "c30a/templates/a.yaml": config_map("{{ .Chart.Name }}")})
    (root / "c29b/Chart.yaml").write_text("apiVersion: v2\nname: c29b\nversion: 1.0.0\n")
    rendered = await renderer.render(root, None, Request(path="c28a"))
    assert [manifest.name for manifest in rendered.manifests] == ["c30a"]


async def test_large_charts(tools: Tools, tmp_path: Path) -> None:
    """What a chart takes counts with all that it depends on, and each time; so does what is packed."""
    root = planted(
        tmp_path / "tree", {**DIAMOND, "c30a/data": "x" * 30_000, "chart/Chart.yaml": TREE["chart/Chart.yaml"]}
    )
    listed = list_chart(root, root / "c28a", 100_000)
    assert listed.charts == 7
    assert 60_000 < listed.size < 70_000
    assert listed.local[0].local[0] is listed.local[1].local[0]  # looked at once
    renderer = Renderer(tools, limits=Limits(size=50_000))
    await renderer.render(root, None, Request(path="c29a"))
    with pytest.raises(RenderError, match="the chart c28a is larger than 50000 bytes, with all that it depends on"):
        await renderer.render(root, None, Request(path="c28a"))
    (root / "chart/charts").mkdir()
    for number in range(2):
        archive = packed(
            f"x{number}", [("Chart.yaml", b"apiVersion: v2\nname: x\nversion: 1.0.0\n"), ("a", b"x" * 25_000)]
        )
        (root / f"chart/charts/{number}.tgz").write_bytes(archive)
        if not number:
            await renderer.render(root, None, Request(path="chart"))
    with pytest.raises(RenderError, match=r"charts/1\.tgz of the chart .* unpacks to more than"):
        await renderer.render(root, None, Request(path="chart"))


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
