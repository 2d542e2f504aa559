"""Which kustomize and helm are used, and what is said if there is none."""

from pathlib import Path

import pytest

from starling.rendering import ToolMissing
from starling.rendering.running import complaint
from starling.rendering.tools import find_helm, find_kustomize


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH that has nothing yet, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STARLING_KUSTOMIZE", raising=False)
    monkeypatch.delenv("STARLING_HELM", raising=False)
    return folder


def program(place: Path) -> str:
    """A program at that place."""
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return str(place)


async def test_in_order(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubectl will do, kustomize is better, and whoever names one gets that."""
    kubectl = program(programs / "kubectl")
    assert await find_kustomize(print) == (kubectl, "kustomize")
    kustomize = program(programs / "kustomize")
    assert await find_kustomize(print) == (kustomize, "build")
    monkeypatch.setenv("STARLING_KUSTOMIZE", mine := program(tmp_path / "my-kustomize"))
    assert await find_kustomize(print) == (mine, "build")
    monkeypatch.setenv("STARLING_KUSTOMIZE", kubectl)
    assert await find_kustomize(print) == (kubectl, "kustomize")
    helm = program(programs / "helm")
    assert await find_helm(print) == (helm,)
    monkeypatch.setenv("STARLING_HELM", mine)
    assert await find_helm(print) == (mine,)


async def test_what_was_built_is_used(programs: Path, tmp_path: Path) -> None:
    """Without one on the PATH, an earlier build is found where it was left."""
    place = tmp_path / "cache/starling/helm-v3.21.4/helm"
    place.parent.mkdir(parents=True)
    built = program(place)
    assert await find_helm(print) == (built,)
    assert not list(programs.iterdir())


async def test_every_way_out_is_named(programs: Path) -> None:
    """With nothing at all the error says what may be done."""
    with pytest.raises(ToolMissing, match=r"no kustomize or kubectl on this machine, and no Go") as raised:
        await find_kustomize(print)
    for way in ("install kustomize or kubectl", "STARLING_KUSTOMIZE", "install Go"):
        assert way in str(raised.value.hint)
    with pytest.raises(ToolMissing, match=r"no helm on this machine, and no Go") as raised:
        await find_helm(print)
    assert "STARLING_HELM" in str(raised.value.hint)
    assert not list(programs.iterdir())


async def test_a_named_program_that_is_none(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is taken quietly for what was named."""
    program(programs / "helm")
    monkeypatch.setenv("STARLING_HELM", "/nowhere/helm")
    with pytest.raises(ToolMissing, match=r"STARLING_HELM is /nowhere/helm, which is no program"):
        await find_helm(print)


def test_complaints_say_what_matters() -> None:
    """Warnings go, and so do folders of this machine."""
    said = (
        "# Warning: 'bases' is deprecated. Please use 'resources' instead.\n"
        "Error: accumulating resources from '/tree/app/x.yaml': open /tree/app/x.yaml: in '/tree' not '/treehouse/x'\n"
        "in /tmp/run/chart/templates/a.yaml\n\n"
        "Use --debug flag to render out invalid YAML\n"
    )
    assert complaint(said, {"/tree": "", "/tmp/run/chart": "charts/app", "/tmp/run": "…"}) == (
        "accumulating resources from 'app/x.yaml': open app/x.yaml: in '.' not '/treehouse/x'\n"
        "in charts/app/templates/a.yaml"
    )
    assert complaint("# Warning: that is all", {}) == "# Warning: that is all"
    assert len(complaint("x" * 100_000, {})) < 2100
