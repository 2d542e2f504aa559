"""What a folder is, is seen by its files, and never guessed."""

from pathlib import Path

import pytest

from starling.rendering import NotAllowed, Package, PathMissing, RenderError
from starling.rendering.detect import detect
from starling.rendering.tree import locate
from tests.unit.rendering.trees import planted


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("kustomization.yaml", Package.KUSTOMIZE),
        ("kustomization.yml", Package.KUSTOMIZE),
        ("Kustomization", Package.KUSTOMIZE),
        ("Chart.yaml", Package.HELM),
        ("chart.yaml", Package.PLAIN),
        ("kustomization.json", Package.PLAIN),
        ("deployment.yaml", Package.PLAIN),
    ],
)
def test_by_the_names_of_its_files(tmp_path: Path, name: str, package: Package) -> None:
    """Names are those that kustomize and Helm look for, letter by letter."""
    root = planted(tmp_path, {name: ""})
    assert detect(root, None, ".") is package


def test_a_folder_with_that_name_is_no_file(tmp_path: Path) -> None:
    """A folder that is called Chart.yaml makes no chart."""
    root = planted(tmp_path, {"Chart.yaml/x.yaml": ""})
    assert detect(root, None, ".") is Package.PLAIN


def test_both_is_refused_until_someone_says_which(tmp_path: Path) -> None:
    """A folder that may be either is an error that names both files, unless the package is given."""
    root = planted(tmp_path, {"app/Chart.yaml": "", "app/kustomization.yml": ""})
    with pytest.raises(RenderError, match=r"app has both kustomization\.yml and Chart\.yaml"):
        detect(root / "app", None, "app")
    assert detect(root / "app", Package.HELM, "app") is Package.HELM
    assert detect(root / "app", Package.KUSTOMIZE, "app") is Package.KUSTOMIZE


@pytest.mark.parametrize("package", [Package.HELM, Package.KUSTOMIZE])
def test_what_it_cannot_be_is_refused(tmp_path: Path, package: Package) -> None:
    """A package that the folder isn't, or that a file can't be, is named."""
    root = planted(tmp_path, {"app/a.yaml": ""})
    with pytest.raises(RenderError, match="app is no "):
        detect(root / "app", package, "app")
    with pytest.raises(RenderError, match=r"a\.yaml is a file"):
        detect(root / "app/a.yaml", package, "app/a.yaml")
    assert detect(root / "app/a.yaml", None, "app/a.yaml") is Package.PLAIN


@pytest.mark.parametrize("path", ["apps/podinfo", "./apps/podinfo", "/apps/podinfo/", "apps/./podinfo", "link"])
def test_a_path_may_be_written_in_any_way(tmp_path: Path, path: str) -> None:
    """A path counts from the tree's root, however it starts, and may be a link within it."""
    root = planted(tmp_path, {"apps/podinfo/a.yaml": "", "link": "-> apps/podinfo"})
    assert locate(root, path) == root / "apps/podinfo"


@pytest.mark.parametrize(
    ("path", "similar"),
    [
        ("apps/podinf", "there is apps/podinfo"),
        ("podinfo", "there is apps/podinfo"),
        ("zzz", "there is apps, infra"),
    ],
)
def test_a_path_that_is_not_there_names_those_that_are(tmp_path: Path, path: str, similar: str) -> None:
    """A wrong path is an error that names it, and folders that may be meant."""
    root = planted(tmp_path, {"apps/podinfo/a.yaml": "", "infra/b.yaml": "", ".git/config": ""})
    with pytest.raises(PathMissing, match=f"the path {path} isn't in the repository") as raised:
        locate(root, path)
    assert raised.value.hint == similar


@pytest.mark.parametrize("path", ["..", "../other", "apps/../../other", "out", "out/passwd", "round/a", "a\0b"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    """No path leads out of the tree, by dots or by links, whether anything is there or not."""
    planted(tmp_path, {"other/x.yaml": ""})
    root = planted(tmp_path / "tree", {"apps/a.yaml": "", "out": "-> /etc", "round": "-> round"})
    with pytest.raises(NotAllowed):
        locate(root, path)
