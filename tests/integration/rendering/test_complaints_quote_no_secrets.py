"""What a tool says of its input is passed on without what it quotes of that."""

from pathlib import Path

import pytest

from starling.rendering import Renderer, Request, ToolFailed
from tests.unit.rendering.trees import planted

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    "kustomization",
    [
        'secretGenerator: [{name: x, literals: ["password=hunter2", "hunter2broken"]}]',
        'resources: [a.yaml]\npatches: [{patch: "hunter2: [", target: {kind: Secret}}]',
        'resources: [a.yaml]\npatches: [{patch: "data:\\n  x: hunter2\\n", target: {kind: "("}}]',
        "resources: [a.yaml]\npatchesStrategicMerge:\n- |-\n  kind: Secret\n  data: {x: hunter2}",
        'resources: [a.yaml]\npatches: [{patch: "apiVersion: v1\\nkind: {x: hunter2}", target: {kind: Secret}}]',
    ],
    ids=["a literal", "a patch", "a patch's target", "a patch without a name", "a patch of the wrong shape"],
)
async def test_kustomize(renderer: Renderer, tmp_path: Path, kustomization: str) -> None:
    """Of literals and patches it says which are wrong by showing them."""
    root = planted(tmp_path / "tree", {"kustomization.yaml": kustomization, "a.yaml": SECRET})
    with pytest.raises(ToolFailed) as caught:
        await renderer.render(root, None, Request())
    assert "hunter2" not in caught.value.message
