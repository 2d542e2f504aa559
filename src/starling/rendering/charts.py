"""The files of a chart in the tree, and of those that it depends on.

What Helm would load is listed: after .helmignore, links within the tree followed, links out of it refused. Dependencies
vendored in charts/ are taken from there, whatever their repository. Those that aren't, but stand in the same tree
(`file://`), are listed too, and those of theirs: this is what `helm dependency build` is for, which isn't run. What
remains comes from elsewhere and is up to the caller.
"""

import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tarfile import BLOCKSIZE
from typing import Any, Final, TypeVar

from starling.errors import InputError
from starling.objects import load_documents
from starling.rendering.archives import DEEPEST, LARGEST, Budget, archived, packed, repacked
from starling.rendering.detect import CHART
from starling.rendering.errors import NotAllowed, RenderError
from starling.rendering.helmignore import Rules, parse_rules
from starling.rendering.tree import inside, named
from starling.versions import best, is_version

__all__ = ["Chart", "Dependency", "is_packed", "list_chart", "not_vendored", "readable", "write_chart"]

Result = TypeVar("Result")

MOST_FILES: Final = 20_000
MOST_CHARTS: Final = 200
LARGEST_RULES: Final = 1 << 20
_LOCKS: Final = ("Chart.lock", "requirements.lock")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A chart that another names."""

    name: str
    version: str
    repository: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart's name, its files by path, the charts from the tree that belong in its charts/, and what isn't there.

    `charts` and `size` are how many charts it takes to write it and how many bytes, unpacked: what several depend on
    is in each of them, and counts each time. `depth` is how many are within each other.
    """

    name: str
    version: str
    files: Mapping[str, Path]
    local: tuple["Chart", ...] = ()
    missing: tuple[Dependency, ...] = ()
    charts: int = 1
    size: int = 0
    depth: int = 1


def list_chart(root: Path, folder: Path, most: int = LARGEST) -> Chart:
    """What belongs to the chart in a folder of the tree; RenderError if that takes more than `most` bytes."""
    return _Listing(root, folder, most).chart(folder, ())


@dataclass
class _Listing:
    """One chart that is listed, with those that it depends on, each looked at once. Mutable: what was found."""

    root: Path
    top: Path
    most: int
    found: dict[Path, Chart] = field(default_factory=dict)

    def chart(self, folder: Path, within: tuple[Path, ...]) -> Chart:
        """The chart in a folder; `within` are the charts that depend on it."""
        called = named(self.root, folder)
        if folder in within:
            raise RenderError(f"{called}/{CHART}: the chart depends on itself")
        if folder not in self.found:
            self.found[folder] = self._look(folder, called, within)
        chart = self.found[folder]
        if len(within) + chart.depth > DEEPEST:
            raise _too_deep(called)
        return chart

    def _look(self, folder: Path, called: str, within: tuple[Path, ...]) -> Chart:
        if len(within) >= DEEPEST:
            raise _too_deep(called)
        files: dict[str, Path] = {}
        size = 0
        for path, source in _files(self.root, folder, _rules(self.root, folder)):
            files[path] = source
            size = self._bounded(size + source.stat().st_size + BLOCKSIZE)
        if CHART not in files:
            raise RenderError(f"{called} is no chart: it has no {CHART}, or its .helmignore leaves it out")
        metadata = _mapping(files[CHART], f"{called}/{CHART}")
        unpacking = Budget(allowed := self.most - size)
        vendored = set(_vendored(files, unpacking))
        size += allowed - unpacking.left
        local: list[Chart] = []
        missing: list[Dependency] = []
        for each in _dependencies(files, metadata):
            if each.name in vendored or any(each.name == chart.name for chart in local):
                continue
            if each.repository.startswith("file://"):
                local.append(self._local(folder, each, within))
                size = self._bounded(size + local[-1].size)
                if sum(chart.charts for chart in local) >= MOST_CHARTS:
                    raise RenderError(f"the chart {named(self.root, self.top)} takes more than {MOST_CHARTS} charts")
            else:
                missing.append(_locked(files, each))
        return Chart(
            str(metadata.get("name", "")),
            str(metadata.get("version", "")),
            files,
            tuple(local),
            tuple(dict.fromkeys(missing)),
            charts=1 + sum(chart.charts for chart in local),
            size=size,
            depth=1 + max((chart.depth for chart in local), default=0),
        )

    def _bounded(self, size: int) -> int:
        if size > self.most:
            raise RenderError(
                f"the chart {named(self.root, self.top)} is larger than {self.most} bytes, with all that it depends on",
                hint="have its .helmignore leave out what isn't part of it",
            )
        return size

    def _local(self, folder: Path, wanted: Dependency, within: tuple[Path, ...]) -> Chart:
        root = self.root
        called = f"{named(root, folder)}/{CHART}: the dependency {wanted.name} at {wanted.repository}"
        place = inside(root, folder / wanted.repository.removeprefix("file://"), called)
        if not (place / CHART).is_file():
            raise RenderError(f"{called} isn't there: {named(root, place)} has no {CHART}")
        chart = self.chart(place, (*within, folder))
        if chart.name != wanted.name:
            raise RenderError(f"{called} is called {chart.name} there")
        if not _fits(chart.version, wanted.version):
            raise RenderError(f"{called} is wanted at version {wanted.version}, but it is {chart.version} there")
        if chart.missing:
            raise not_vendored(named(root, place), chart.missing[0])
        return chart


def _too_deep(called: str) -> RenderError:
    return RenderError(f"{called}/{CHART}: charts depend on each other more than {DEEPEST} deep")


def not_vendored(called: str, missing: Dependency) -> NotAllowed:
    """The error for a chart that depends on one from elsewhere, which it doesn't bring along."""
    source = f"at {missing.repository}" if missing.repository else "with no repository"
    return NotAllowed(
        f"{called}/{CHART}: the dependency {missing.name} {source} isn't in {called}/charts",
        hint=f"vendor it: run helm dependency update {called} and commit {called}/charts; "
        "or allow remote content for this unit",
    )


def write_chart(chart: Chart, target: Path) -> None:
    """Make a folder that holds the chart, with the charts from the tree that it depends on packed in its charts/."""
    for path, source in chart.files.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_content(path, source))
    for each in chart.local:
        charts = target / "charts"
        charts.mkdir(parents=True, exist_ok=True)
        (charts / f"{each.name}-{each.version}.tgz").write_bytes(packed(each.name, _packable(each)))


def _packable(chart: Chart) -> Iterator[tuple[str, bytes]]:
    for path, source in chart.files.items():
        yield path, _content(path, source)
    for each in chart.local:
        yield f"charts/{each.name}-{each.version}.tgz", packed(each.name, _packable(each))


def _content(path: str, source: Path) -> bytes:
    """What a chart's file is written as."""
    return readable(repacked, source.read_bytes(), path) if is_packed(path) else source.read_bytes()


def is_packed(path: str) -> bool:
    """Whether Helm takes a file of a chart for a packed chart."""
    return path.startswith("charts/") and path.endswith(".tgz")


def readable(read: Callable[[bytes], Result], data: bytes, path: str) -> Result:
    """What `read` makes of a packed chart; RenderError if it can't be read."""
    try:
        return read(data)
    except tarfile.TarError as error:
        raise RenderError(f"{path} of the chart is no archive that can be read: {error}") from error


def _fits(version: str, wanted: str) -> bool:
    """Is it a version that is wanted? What we can't read is for Helm to judge."""
    try:
        return not is_version(version) or best([version], wanted or "*") is not None
    except InputError:
        return True


def _files(root: Path, folder: Path, rules: Rules) -> Iterator[tuple[str, Path]]:
    """Every file by its path in the chart and where it really is, by name; as Helm walks, links and all."""
    todo: list[tuple[str, tuple[Path, ...]]] = [("", (folder,))]
    found = 0
    while todo:
        prefix, parents = todo.pop()
        below: list[tuple[str, tuple[Path, ...]]] = []
        for place in sorted(parents[-1].iterdir(), key=lambda each: each.name):
            path = f"{prefix}{place.name}"
            called = f"the link {named(root, folder / path)}"
            target = inside(root, place, called) if place.is_symlink() else place
            if target in parents:
                raise NotAllowed(f"{called} leads to a folder that it is in")
            if rules.ignore(path, folder=target.is_dir()):
                continue
            found += 1
            if found > MOST_FILES:
                raise RenderError(f"the chart {named(root, folder)} has more than {MOST_FILES} files")
            if target.is_dir():
                below.append((f"{path}/", (*parents, target)))
            elif target.is_file():
                yield path, target
            else:
                raise NotAllowed(f"{named(root, folder / path)} is no file, and no link to one")
        todo += reversed(below)


def _rules(root: Path, folder: Path) -> Rules:
    file = inside(root, folder / ".helmignore", f"the link {named(root, folder / '.helmignore')}")
    if file.is_file() and file.stat().st_size > LARGEST_RULES:
        raise RenderError(f"{named(root, folder / '.helmignore')} is larger than {LARGEST_RULES} bytes")
    text = file.read_text(errors="surrogateescape") if file.is_file() else ""
    return parse_rules(text, named(root, folder / ".helmignore"))


def _vendored(files: Mapping[str, Path], budget: Budget) -> Iterator[str]:
    """The names of the charts in charts/. All that is packed there is looked through, which the budget bounds."""
    for path, source in files.items():
        parts = PurePosixPath(path).parts
        contents: list[tuple[str, bytes]] = []
        if is_packed(path):
            contents = readable(lambda data: archived(data, CHART, budget), source.read_bytes(), path)
        if parts[0] != "charts" or len(parts) < 2 or parts[1][0] in "_.":
            continue
        if len(parts) == 3 and parts[2] == CHART:
            yield str(_mapping(source, path).get("name"))
        elif len(parts) == 2:
            yield from (str(_parsed(text, path).get("name")) for name, text in contents if name.count("/") == 1)


def _dependencies(files: Mapping[str, Path], metadata: Mapping[str, Any]) -> Iterator[Dependency]:
    found = metadata.get("dependencies")
    if "requirements.yaml" in files and not found:
        found = _mapping(files["requirements.yaml"], "requirements.yaml").get("dependencies")
    yield from _listed(found)


def _listed(value: Any) -> Iterator[Dependency]:
    for each in value if isinstance(value, list) else []:
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            yield Dependency(each["name"], str(each.get("version") or ""), str(each.get("repository") or ""))


def _locked(files: Mapping[str, Path], wanted: Dependency) -> Dependency:
    """The dependency at the version that the lock says, if it says one."""
    for name in _LOCKS:
        if name in files:
            for each in _listed(_mapping(files[name], name).get("dependencies")):
                if (each.name, each.repository) == (wanted.name, wanted.repository):
                    return each
    return wanted


def _mapping(file: Path, called: str) -> dict[str, Any]:
    return _parsed(file.read_bytes(), called)


def _parsed(text: bytes, called: str) -> dict[str, Any]:
    documents = load_documents(text, called)
    value = documents[0].value if documents else None
    return value if isinstance(value, dict) else {}
