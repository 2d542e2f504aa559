"""What the docs say is what the code says."""

import pkgutil
import re
from pathlib import Path

import pytest

import starling.kube
import starling.rendering
import starling.sources
from docs.generate import references
from starling.errors import StarlingError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("path", "text"), references().items(), ids=lambda value: getattr(value, "name", ""))
def test_generated_references(path: Path, text: str) -> None:
    """Each page is what `make docs` would write."""
    assert path.read_text(encoding="utf-8") == text, "run `make docs`"


def test_links_lead_somewhere() -> None:
    """Every relative link in a page points to a file that is there."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", _prose(page))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_error_tree_is_drawn_whole() -> None:
    """Every public error stands in the tree of starling.errors, or in that of the package which has its own."""
    for module in pkgutil.walk_packages(starling.__path__, "starling."):
        if not module.name.endswith("__main__"):
            __import__(module.name)
    packages = (starling, starling.kube, starling.sources, starling.rendering)
    drawn = "".join(str(package.errors.__doc__) for package in packages)
    names = {error.__name__ for error in _below(StarlingError)}
    assert {name for name in names if not name.startswith("_") and not re.search(rf"\b{name}\b", drawn)} == set()


def _below(error: type[StarlingError]) -> set[type[StarlingError]]:
    return {error}.union(*(_below(child) for child in error.__subclasses__()))
