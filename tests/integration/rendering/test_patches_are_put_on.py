"""Patches change what was rendered, whatever it was rendered from, as kustomize's own would."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from starling.objects import Manifest, dump
from starling.rendering import Cache, Renderer, Request, ToolFailed, Tools
from tests.integration.third_party import PODINFO, module_folder
from tests.unit.rendering.trees import config_map, planted

SCALE = {"patch": json.dumps([{"op": "add", "path": "/spec/replicas", "value": 7}]), "target": {"kind": "Deployment"}}
LABEL = {
    "patch": dump({"kind": "anything", "metadata": {"name": "anything", "labels": {"ring": "${RING}"}}}),
    "target": {"name": ".*podinfo"},
}


def deployments(manifests: tuple[Manifest, ...]) -> list[Mapping[str, Any]]:
    """The Deployments among them."""
    return [each.content for each in manifests if each.key.kind == "Deployment"]


@pytest.mark.parametrize("path", ["kustomize", "charts/podinfo"])
async def test_nothing_else_is_changed(renderer: Renderer, path: str) -> None:
    """Of a kustomization and of a chart: what the patch says is so, all else as it was, with where it is from."""
    root = module_folder(PODINFO)
    plain = await renderer.render(root, None, Request(path=path))
    patched = await renderer.render(root, None, Request(path=path, patches=[SCALE]))
    wanted = {each.key: (copy.deepcopy(each.content), each.origin) for each in plain.manifests}
    for content, _ in wanted.values():
        if content["kind"] == "Deployment":
            content["spec"]["replicas"] = 7
    assert {each.key: (each.content, each.origin) for each in patched.manifests} == wanted
    assert len(patched.manifests) == len(plain.manifests)
    assert patched.content_digest != plain.content_digest


async def test_of_plain_manifests_too_and_one_after_the_other(renderer: Renderer, tmp_path: Path) -> None:
    """A part of an object is merged in; a later patch meets what an earlier one made; variables stay for later."""
    root = planted(tmp_path / "tree", {"cm.yaml": config_map("web", a="1", b="yes")})
    named = {"patch": dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": None}})}
    moved = [{"op": "move", "from": "/data/b", "path": "/data/c"}, {"op": "add", "path": "/data/d", "value": "${D}"}]
    patches: list[Mapping[str, Any]] = [
        named,
        {"patch": json.dumps(moved), "target": {"kind": "ConfigMap", "name": "web"}},
    ]
    rendered = await renderer.render(root, None, Request(patches=patches))
    assert [each.content["data"] for each in rendered.manifests] == [{"c": "yes", "d": "${D}"}]


async def test_labels_and_names_pick_objects(renderer: Renderer) -> None:
    """A target is looked for as kustomize does, by regular expressions."""
    rendered = await renderer.render(module_folder(PODINFO), None, Request(path="kustomize", patches=[LABEL]))
    assert {each.content["metadata"]["labels"]["ring"] for each in rendered.manifests} == {"${RING}"}


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"patch": "a: [", "target": {"kind": "ConfigMap"}}, "unable to parse SM or JSON patch"),
        ({"patch": dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})}, "no matches for Id"),
        ({"patch": '[{"op": "remove", "path": "/data/x"}]', "target": {"kind": "ConfigMap"}}, "remove"),
        ({"patch": "../../etc/passwd", "target": {"kind": "ConfigMap"}}, "unable to parse SM or JSON patch"),
    ],
    ids=["no YAML", "for nothing", "of what isn't there", "a file"],
)
async def test_what_cant_be_put_on_says_why(
    renderer: Renderer, tmp_path: Path, patch: Mapping[str, Any], said: str
) -> None:
    """In kustomize's words, with nothing of this machine in them."""
    root = planted(tmp_path / "tree", {"cm.yaml": config_map("web", a="1")})
    with pytest.raises(ToolFailed, match="can't patch what was rendered") as failed:
        await renderer.render(root, None, Request(patches=[patch]))
    assert said in str(failed.value)
    assert str(tmp_path) not in str(failed.value)


async def test_each_is_made_once(tools: Tools, tmp_path: Path) -> None:
    """What clusters with the same patches share is made once, and from one render of the rest."""
    counted, program = tmp_path / "counted", tmp_path / "kustomize"
    program.write_text(f'#!/bin/sh\necho run >> {counted}\nexec {tools.kustomize[0]} "$@"\n')
    program.chmod(0o755)
    renderer = Renderer(Tools((str(program), "build")), cache=Cache(tmp_path / "cache"))
    root = module_folder(PODINFO)
    for patches in ([], [SCALE], [SCALE], [LABEL], []):
        rendered = await renderer.render(root, "sha256:1", Request(path="kustomize", patches=patches))
        assert [each["spec"].get("replicas") for each in deployments(rendered.manifests)] == [
            7 if SCALE in patches else None
        ]
    assert counted.read_text().count("run") == 3
