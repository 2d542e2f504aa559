"""Charts that reach out: for files of the machine, through links, archives and schemas. Nothing comes of it."""

import hashlib
import json
from pathlib import Path

import pytest

from starling.programs import run
from starling.rendering import NotAllowed, Renderer, RenderError, ToolFailed, Tools
from starling.rendering.archives import packed
from starling.rendering.running import environment
from tests.integration.rendering.conftest import Web
from tests.integration.rendering.test_charts_are_rendered import META, chart, depending, names, told
from tests.unit.rendering.test_packed_charts_are_bounded import two_faced, written
from tests.unit.rendering.trees import config_map, planted


async def test_fetched_charts_are_looked_through(renderer: Renderer, tmp_path: Path, web: Web) -> None:
    """A schema that reads files of the machine is refused in what is fetched too."""
    planted(tmp_path, {"machine.json": '{"const": "hunter2"}'})
    schema = json.dumps({"$ref": f"file://{tmp_path}/machine.json"})
    web.files["/lib-1.0.0.tgz"] = archive = packed(
        "lib", [("Chart.yaml", META.format("lib").encode()), ("values.schema.json", schema.encode())]
    )
    entry = f"urls: ['{web.url}/lib-1.0.0.tgz'], digest: {hashlib.sha256(archive).hexdigest()}"
    index = f"apiVersion: v1\nentries:\n  lib:\n  - {{apiVersion: v2, name: lib, version: 1.0.0, {entry}}}\n"
    web.files["/index.yaml"] = index.encode()
    root = planted(tmp_path / "tree", {**chart(), "app/Chart.yaml": depending("app", web.url)})
    problem = r"app/charts/lib-1\.0\.0\.tgz/lib/values\.schema\.json: \$ref names .* from this machine"
    with pytest.raises(NotAllowed, match=problem):
        await names(renderer, root, allow_remote=True)


async def test_types_that_hide_a_schema(renderer: Renderer, tmp_path: Path) -> None:
    """A member of a vendored archive that only Helm takes for a file is refused by name."""
    planted(tmp_path, {"machine.json": '{"const": "hunter2"}'})
    schema = json.dumps({"$ref": f"file://{tmp_path}/machine.json"}).encode()
    root = planted(tmp_path / "tree", {**chart(), "app/charts/_kept": "", "app/values.yaml": "lib: {a: b}"})
    members = (("lib/Chart.yaml", b"0", META.format("lib").encode()), ("lib/values.schema.json", b"Z", schema))
    (root / "app/charts/lib-1.0.0.tgz").write_bytes(written(*members))
    problem = r"lib-1\.0\.0\.tgz of the chart .*: lib/values\.schema\.json in it is neither a file nor a folder"
    with pytest.raises(RenderError, match=problem):
        await names(renderer, root)


async def test_archives_with_two_readings(renderer: Renderer, tmp_path: Path) -> None:
    """A schema that only Go finds in a vendored archive doesn't reach Helm."""
    planted(tmp_path, {"machine.json": '{"properties": {"a": {"const": "hunter2"}}}'})
    schema = json.dumps({"$ref": f"file://{tmp_path}/machine.json"}).encode()
    root = planted(tmp_path / "tree", {**chart(), "app/charts/_kept": "", "app/values.yaml": "lib: {a: b}"})
    shown = {"lib/Chart.yaml": META.format("lib").encode(), "lib/templates/b.yaml": config_map("b").encode()}
    archive = root / "app/charts/lib-1.0.0.tgz"
    archive.write_bytes(two_faced(shown, {"lib/values.schema.json": schema}))
    command = (*renderer.tools.helm, "template", "x", str(root / "app"))
    done = await run(*command, environment=environment(tmp_path / "home", network=False), within=60)
    assert "hunter2" in done.complaints  # so Helm by itself would
    assert await names(renderer, root) == {"b"}


async def test_files_of_the_machine_are_out_of_reach(renderer: Renderer, tmp_path: Path) -> None:
    """Whatever path a template asks for, it gets files of its chart only."""
    planted(tmp_path, {"secret.txt": "secret"})
    asked = [
        "../secret.txt",
        "../../secret.txt",
        "/etc/hostname",
        f"{tmp_path}/secret.txt",
        "own.txt",
        "../values-0.json",
    ]
    reads = "".join(
        f"  f{number}: {{{{ .Files.Get {json.dumps(path)} | quote }}}}\n" for number, path in enumerate(asked)
    )
    globs = '  glob: {{ range $path, $_ := .Files.Glob "../**" }}{{ $path }}{{ end }}\n'
    root = planted(
        tmp_path / "tree", chart(templates__a_yaml=config_map("told") + "data:\n" + reads + globs, own_txt="own")
    )
    found = await told(renderer, root, values=[{"password": "x"}])
    assert found == {"f0": "", "f1": "", "f2": "", "f3": "", "f4": "own", "f5": "", "glob": None}


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("app/templates/a.yaml", "../../../secret.yaml"),
        ("app/data.txt", "/etc/hostname"),
        ("app/charts", "../../charts"),
        ("app/.helmignore", "/etc/hostname"),
        ("app/values.yaml", "../../secret.yaml"),
        ("app/values.schema.json", "/dev/zero"),
    ],
)
async def test_links_out_of_the_tree_are_refused(renderer: Renderer, tmp_path: Path, link: str, target: str) -> None:
    """A link out is refused by its name, wherever in the chart it is."""
    planted(tmp_path, {"secret.yaml": config_map("secret"), "charts/x/Chart.yaml": META.format("x")})
    root = planted(tmp_path / "tree", {**chart(), link: f"-> {target}"})
    with pytest.raises(NotAllowed, match=f"the link {link} leads out of the repository"):
        await names(renderer, root)


async def test_links_within_the_tree_are_followed(renderer: Renderer, tmp_path: Path) -> None:
    """As Helm does; one that leads in a circle is refused, and so is what is no file."""
    files = {**chart(), "shared/b.yaml": config_map("b"), "shared/c/c.yaml": config_map("c")}
    root = planted(tmp_path / "tree", {**files, "app/templates/b.yaml": "-> ../../shared/b.yaml"})
    planted(root, {"app/templates/c": "-> ../../shared/c"})
    assert await names(renderer, root) == {"b", "c"}
    planted(root, {"app/templates/round": "-> ../templates"})
    with pytest.raises(NotAllowed, match="the link app/templates/round leads to a folder that it is in"):
        await names(renderer, root)
    (root / "app/templates/round").unlink()
    planted(root, {"app/none": "-> nowhere"})
    with pytest.raises(NotAllowed, match="app/none is no file"):
        await names(renderer, root)


async def test_schemas_fetch_nothing(renderer: Renderer, tmp_path: Path, web: Web) -> None:
    """A schema that refers elsewhere is refused in any chart; what we miss couldn't be fetched; allowed, it is."""
    schema = json.dumps({"$ref": f"{web.url}/schema.json"})
    web.files["/schema.json"] = b'{"required": ["must"]}'
    root = planted(tmp_path / "tree", chart(values_schema_json=schema, templates__a_yaml=config_map("a")))
    with pytest.raises(NotAllowed, match=r"app/values\.schema\.json: \$ref names .*/schema\.json, which is remote"):
        await names(renderer, root)
    around = planted(tmp_path / "other", {**chart(), "app/charts/x/Chart.yaml": META.format("x")})
    (around / "app/charts/y.tgz").write_bytes(
        packed("y", [("Chart.yaml", META.format("y").encode()), ("values.schema.json", b'{"$ref": "file:///etc/x"}')])
    )
    with pytest.raises(NotAllowed, match=r"app/charts/y\.tgz/y/values\.schema\.json: .* from this machine"):
        await names(renderer, around)
    assert web.asked == []
    with pytest.raises(ToolFailed, match="missing property 'must'"):
        await names(renderer, root, allow_remote=True)
    assert web.asked == ["/schema.json"]


async def test_the_run_itself_keeps_a_schema_from_fetching(tools: Tools, tmp_path: Path, web: Web) -> None:
    """Even a chart that nobody looked at fetches nothing in the environment that Helm is given."""
    schema = json.dumps({"$ref": f"{web.url}/schema.json"})
    web.files["/schema.json"] = b"{}"
    root = planted(tmp_path / "tree", chart(values_schema_json=schema))
    command = (*tools.helm, "template", "x", str(root / "app"))
    done = await run(*command, environment=environment(tmp_path / "home", network=False), within=60)
    assert done.code != 0
    assert web.asked == []
    done = await run(*command, environment=environment(tmp_path / "home", network=True), within=60)
    assert done.code == 0, done.complaints
    assert web.asked == ["/schema.json"]
