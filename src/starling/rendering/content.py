"""The content digest: what a rollout compares to see whether a version brings anything new.

For plain manifests and kustomizations it covers the objects, in whatever order. For charts, whose objects depend on
each cluster's values, it covers the files: after .helmignore, with the charts from the same tree that it depends on,
without documentation. It may move though the chart renders alike, but it never stays though the chart doesn't; so
documentation counts after all where a template might read it (anything in the chart says `Files`), and NOTES.txt
where it might define something. (Only values that make a template read a file, through `tpl`, go unnoticed.)

The text starts with the scheme's version. A digest of another scheme can't be compared with it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from starling.objects import Manifest, digest
from starling.rendering.charts import Chart

__all__ = ["SCHEME", "chart_digest", "is_documentation", "manifests_digest"]

SCHEME: Final = "c1"
_DOCUMENTATION: Final = re.compile(
    r"(?:readme|changelog|changes|contributing|license|notice|authors)(?:\..*)?", re.IGNORECASE
)
_NOTES: Final = "templates/NOTES.txt"


def manifests_digest(manifests: Iterable[Manifest]) -> str:
    """The digest of a set of objects."""
    entries = sorted([each.key.group, each.key.kind, each.namespace, each.name, each.digest] for each in manifests)
    return f"{SCHEME}:{digest(['manifests', entries])}"


def chart_digest(chart: Chart) -> str:
    """The digest of what a chart is made of."""
    files = dict(_contents(chart, ""))
    documents = {path for path in files if is_documentation(path)}
    if any(b"Files" in files[path] for path in files.keys() - documents):
        documents = {path for path in documents if _in_chart(path) == _NOTES}
    documents = {path for path in documents if _in_chart(path) != _NOTES or b"define" not in files[path]}
    entries = [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files.keys() - documents)]
    return f"{SCHEME}:{digest(['chart', entries])}"


def is_documentation(path: str) -> bool:
    """Whether a file of a chart is for people to read."""
    path = _in_chart(path)
    parts = PurePosixPath(path).parts
    if parts[0] in ("templates", "charts"):
        return path == _NOTES
    name = parts[-1]
    return (
        parts[0] == "docs"
        or name.lower().endswith(".md")
        or (len(parts) == 1 and _DOCUMENTATION.fullmatch(name) is not None)
    )


def _in_chart(path: str) -> str:
    """A path as seen from the innermost chart that it is in."""
    return re.sub(r"^(?:charts/[^/]+/)+", "", path)


def _contents(chart: Chart, prefix: str) -> Iterator[tuple[str, bytes]]:
    for path, source in chart.files.items():
        yield f"{prefix}{path}", source.read_bytes()
    for each in chart.local:
        yield from _contents(each, f"{prefix}charts/{each.name}/")
