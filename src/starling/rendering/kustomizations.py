"""What kustomizations refer to, looked through before kustomize runs.

From the folder that is rendered, every kustomization is read that it leads to. What lies elsewhere (URLs, git hosts),
runs programs (plugins, functions, charts) or leads out of the tree is refused by name; so is what isn't there, since
kustomize would try to clone whatever it doesn't find. Field names count in any case, as they do for kustomize.

This is for good messages and for what no environment can prevent; that nothing is fetched anyway is the business of
`running`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starling.objects import Document, load_documents
from starling.rendering.detect import KUSTOMIZATIONS
from starling.rendering.errors import NotAllowed, RenderError
from starling.rendering.tree import inside, named

__all__ = ["Reference", "check_kustomizations", "is_of_machine", "is_remote", "references"]

PLUGINS: Final = frozenset({"generators", "transformers", "validators"})
FOLDERS: Final = PLUGINS | {"resources", "bases", "components"}
"""Where a folder may stand, which is a kustomization itself."""
INLINE: Final = PLUGINS | {"patchesstrategicmerge"}
"""Where YAML itself may stand instead of the path of a file."""
LISTS: Final = FOLDERS | INLINE | {"crds", "configurations"}
PATHS: Final = ("patches", "patchesjson6902", "replacements")
GENERATORS: Final = ("configmapgenerator", "secretgenerator")
PLUGIN_FILES: Final = frozenset({"path", "paths", "files", "env", "envs"})
CHARTS: Final = ("helmcharts", "helmchartinflationgenerator")

_REMOTE: Final = re.compile(
    r"https?:|[a-z][a-z0-9+.-]*://|[a-z0-9]+::|github\.com[/:]|gh:|[a-z][a-z0-9-]*@[^/:]*[/:]", re.IGNORECASE
)
_FORCED: Final = re.compile(r"(?:[a-z0-9]+::)+", re.IGNORECASE)
_HINT: Final = "copy it into the repository, or allow remote content for this unit"


@dataclass(frozen=True, slots=True)
class Reference:
    """What a field of a kustomization names: text that is a path, a URL, or (where it may be) YAML itself."""

    field: str
    text: str

    @property
    def is_inline(self) -> bool:
        """Whether it is the content itself."""
        yaml = "\n" in self.text.strip() or ": " in self.text or self.text.lstrip().startswith(("{", "["))
        return yaml and self.field in INLINE


def is_remote(text: str) -> bool:
    """Would kustomize, of any version, fetch this from elsewhere? Rather too often yes than too seldom."""
    return _REMOTE.match(text.strip()) is not None


def is_of_machine(text: str) -> bool:
    """Whether a remote form names a place on this machine: a file: URL, or a path that git is to take for one."""
    text = text.strip()
    rest = _FORCED.sub("", text, count=1) if _FORCED.match(text) else text
    return rest.casefold().startswith("file:") or (rest != text and not is_remote(rest))


def references(kustomization: Any) -> Iterator[Reference]:
    """Everything that a kustomization names, in its order."""
    for key, value in _fields(kustomization):
        if key in LISTS:
            yield from (Reference(key, text) for text in _texts(value))
        elif key in PATHS:
            for item in value if isinstance(value, list) else []:
                # A list of plain texts is what `patches` once was.
                yield from (Reference(key, text) for text in _texts([item]))
                yield from _path(key, item)
        elif key in GENERATORS:
            for item in value if isinstance(value, list) else []:
                yield from _generated(key, item)
        elif key == "openapi":
            yield from _path(key, value)
        elif key in CHARTS and value:
            yield Reference(key, "")


def _path(key: str, item: Any) -> Iterator[Reference]:
    for name, text in _fields(item):
        if name == "path" and isinstance(text, str) and text:
            yield Reference(f"{key}.path", text)


def _generated(key: str, item: Any) -> Iterator[Reference]:
    for name, value in _fields(item):
        if name == "files":
            yield from (Reference(f"{key}.files", _file(text)) for text in _texts(value))
        elif name in ("envs", "env"):
            yield from (Reference(f"{key}.{name}", text) for text in _texts(value if name == "envs" else [value]))


def _file(text: str) -> str:
    """The file of an entry of `files`, which may have a name before it; a URL has its own = signs."""
    return text if is_remote(text) else text.partition("=")[2] or text


def _fields(value: Any) -> list[tuple[str, Any]]:
    return [(key.casefold(), each) for key, each in value.items()] if isinstance(value, dict) else []


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def check_kustomizations(root: Path, folder: Path, *, allow_remote: bool) -> None:
    """Look through a kustomization and all that it leads to in the tree; raise the first fault."""
    walk = _Walk(root, allow_remote)
    walk.todo.append((folder, False))
    while walk.todo:
        walk.look(*walk.todo.pop())


@dataclass
class _Walk:
    """One look through. Mutable: what was seen, what is to be."""

    root: Path
    allow_remote: bool
    todo: list[tuple[Path, bool]] = field(default_factory=list)
    seen: set[tuple[Path, bool]] = field(default_factory=set)

    def look(self, folder: Path, plugins: bool) -> None:
        """Check the kustomization in a folder; if its objects are `plugins`, those as well."""
        if (folder, plugins) in self.seen:
            return
        self.seen.add((folder, plugins))
        file = next((folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()), None)
        if file is None:
            raise RenderError(f"{named(self.root, folder)} is named as a base, but has no {KUSTOMIZATIONS[0]}")
        called = named(self.root, file)
        for document in self.read(file):
            for reference in references(document.value):
                self.check(folder, called, reference, plugins=plugins)

    def check(self, folder: Path, called: str, reference: Reference, *, plugins: bool) -> None:
        """Check one reference of the kustomization `called` so."""
        plugins = plugins or reference.field in PLUGINS
        if reference.field in CHARTS:
            raise NotAllowed(
                f"{called}: {reference.field} would have kustomize run helm on a chart",
                hint="render the chart by itself, with a path that leads to it, or write its manifests into files",
            )
        text = reference.text
        if is_remote(text):
            self.check_remote(text, f"{called}: {reference.field}")
            return
        if reference.is_inline:
            if reference.field in PLUGINS:
                self.check_plugins(load_documents(text, called), called)
            return
        place = inside(self.root, folder / text, f"{called}: {reference.field} names {_shown(text)}, which")
        if place.is_dir() and reference.field in FOLDERS:
            self.todo.append((place, plugins))
        elif not place.is_file():
            raise RenderError(
                f"{called}: {reference.field} names {_shown(text)}, which isn't in the repository",
                hint="paths count from the kustomization's own folder",
            )
        elif plugins and reference.field in FOLDERS:
            self.check_plugins(self.read(place), named(self.root, place))

    def read(self, file: Path) -> list[Document]:
        """The documents of a file in the tree."""
        place = inside(self.root, file, named(self.root, file))
        return load_documents(place.read_bytes(), named(self.root, file))

    def check_plugins(self, documents: list[Document], called: str) -> None:
        """Refuse objects that have kustomize run something, or make it fetch something."""
        for document in documents:
            value = document.value
            kind = value.get("kind") if isinstance(value, dict) else None
            if not isinstance(value, dict) or value.get("apiVersion") != "builtin":
                raise NotAllowed(
                    f"{called}: {kind or 'a document'} is a plugin or function, which kustomize would have to run",
                    hint="only kustomize's own (apiVersion: builtin) may be used: write its result into a file",
                )
            if str(kind).casefold() == "helmchartinflationgenerator":
                raise NotAllowed(f"{called}: {kind} would have kustomize run helm on a chart")
            for text in filter(is_remote, _files_of(value)):
                self.check_remote(text, f"{called}: {kind}")

    def check_remote(self, text: str, called: str) -> None:
        """Refuse what is remote unless it is allowed, and what is on this machine in any case."""
        if is_of_machine(text):
            raise NotAllowed(
                f"{called} names {_shown(text)}, which is on the machine that renders, outside of the repository",
                hint="copy it into the repository",
            )
        if not self.allow_remote:
            raise NotAllowed(f"{called} names {_shown(text)}, which is remote", hint=_HINT)


def _files_of(plugin: Any) -> Iterator[str]:
    """The files that one of kustomize's own plugins names, which differ in where they name them."""
    todo = [plugin]
    while todo:
        item = todo.pop()
        todo += (
            [value for _, value in _fields(item)] if isinstance(item, dict) else item if isinstance(item, list) else []
        )
        for name, value in _fields(item):
            if name in PLUGIN_FILES:
                texts = _texts(value if isinstance(value, list) else [value])
                yield from (_file(text) if name == "files" else text for text in texts)


def _shown(text: str) -> str:
    """A reference as a message shows it: without what could be a password."""
    return re.sub(r"(?<=://)[^/@\s]+@", "…@", text.strip())[:200]
