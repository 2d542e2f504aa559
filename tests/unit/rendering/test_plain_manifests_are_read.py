"""Plain manifests: every file below a path, in order, once, and with its name."""

from pathlib import Path

import pytest

from starling.objects import ManifestError
from starling.rendering import NotAllowed, RenderError
from starling.rendering.plain import read_plain
from tests.unit.rendering.trees import config_map, planted

MOST = 1 << 20


def names(root: Path, path: str = ".") -> list[str]:
    """The names of what is read, in order."""
    return [manifest.name for manifest in read_plain(root, root / path, MOST)]


def test_all_below_the_path_sorted(tmp_path: Path) -> None:
    """YAML and JSON are read, folder by folder and by name; hidden and other files aren't."""
    root = planted(
        tmp_path,
        {
            "app/b.yml": config_map("b"),
            "app/a.yaml": config_map("a"),
            "app/c.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}',
            "app/z/1.yaml": config_map("z1"),
            "app/m/1.yaml": config_map("m1"),
            "app/.hidden.yaml": "[",
            "app/.github/x.yaml": "[",
            "app/README.md": "[",
            "other/x.yaml": "[",
        },
    )
    assert names(root, "app") == ["a", "b", "c", "m1", "z1"]


def test_lists_and_documents_are_taken_apart_with_their_origins(tmp_path: Path) -> None:
    """Each object says which file, document and line it is from, counted from the tree's root."""
    item = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: %s}\n"
    text = config_map("one") + "---\napiVersion: v1\nkind: List\nitems:\n" + item % "two" + item % "three"
    root = planted(tmp_path, {"app/all.yaml": text})
    found = [(manifest.name, str(manifest.origin)) for manifest in read_plain(root, root / "app", MOST)]
    assert found == [
        ("one", "app/all.yaml:1 (document 1)"),
        ("two", "app/all.yaml:9 (document 2)"),
        ("three", "app/all.yaml:12 (document 2)"),
    ]


def test_a_single_file(tmp_path: Path) -> None:
    """A path may be that of a file."""
    root = planted(tmp_path, {"app/a.yaml": config_map("a"), "app/b.yaml": config_map("b")})
    assert names(root, "app/b.yaml") == ["b"]


def test_an_object_twice_names_both_places(tmp_path: Path) -> None:
    """Two files with one object are refused with both origins."""
    root = planted(tmp_path, {"a.yaml": config_map("x"), "sub/b.yaml": config_map("other") + "---\n" + config_map("x")})
    with pytest.raises(ManifestError, match=r"sub/b\.yaml:6 \(document 2\): .* is also at a\.yaml:1 \(document 1\)"):
        names(root)


def test_an_alias_bomb_is_refused_by_name(tmp_path: Path) -> None:
    """Aliases that would write out without bound are refused, with file and line, at once."""
    bomb = "\n".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9 if n else 'x'}]" for n in range(12))
    root = planted(tmp_path, {"app/bomb.yaml": bomb})
    with pytest.raises(ManifestError, match=r"app/bomb\.yaml:\d+ \(document 1\): .*alias"):
        names(root)


@pytest.mark.parametrize("text", ["a: [", "just text", "kind: ConfigMap", "apiVersion: v1\nkind: X\n"])
def test_what_is_no_manifest_says_where(tmp_path: Path, text: str) -> None:
    """A file that can't be read, or holds no object, is named."""
    root = planted(tmp_path, {"app/bad.yaml": text})
    with pytest.raises(ManifestError, match=r"^app/bad\.yaml:"):
        names(root)


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization", "Chart.yaml"])
def test_a_kustomization_or_chart_further_down_is_no_manifest(tmp_path: Path, name: str) -> None:
    """What isn't plain isn't taken for it, and the message says which folder to give."""
    root = planted(tmp_path, {"a.yaml": config_map("a"), f"sub/{name}": config_map("b")})
    with pytest.raises(RenderError, match=f"sub/{name} is a ") as raised:
        names(root)
    assert "render sub by itself" in str(raised.value.hint)


def test_links_stay_in_the_tree(tmp_path: Path) -> None:
    """A file may be a link within the tree, even to beside the path; one that leads out is refused by name."""
    planted(tmp_path, {"secret.yaml": config_map("secret")})
    root = planted(tmp_path / "tree", {"shared/a.yaml": config_map("a"), "app/a.yaml": "-> ../shared/a.yaml"})
    assert names(root, "app") == ["a"]
    planted(root, {"app/out.yaml": "-> ../../secret.yaml"})
    with pytest.raises(NotAllowed, match=r"the link app/out\.yaml leads out"):
        names(root, "app")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("../shared", "is a link to a folder"),
        ("/etc", "leads out"),
        (".", "is a link to a folder"),
        ("self", "circle"),
    ],
)
def test_folders_are_not_linked(tmp_path: Path, target: str, problem: str) -> None:
    """A link to a folder is refused by name, wherever it leads."""
    root = planted(
        tmp_path, {"app/a.yaml": config_map("a"), "shared/b.yaml": config_map("b"), "app/self": f"-> {target}"}
    )
    if target == "self":
        planted(root, {"app/self.yaml": "-> self.yaml"})
        with pytest.raises(NotAllowed, match=problem):
            names(root, "app")
        return
    with pytest.raises(NotAllowed, match=f"app/self .*{problem}|app/self {problem}"):
        names(root, "app")


def test_no_more_is_read_than_may_be(tmp_path: Path) -> None:
    """Past the limit nothing is read, and the message says where that was."""
    root = planted(tmp_path, {"a.yaml": config_map("a"), "b.yaml": config_map("b", text="x" * 500)})
    with pytest.raises(RenderError, match=r"more than may be read at once, up to b\.yaml"):
        read_plain(root, root, 300)
