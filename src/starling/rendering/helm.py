"""Charts, rendered by `helm template` on a copy.

CRDs are among the manifests; so are hooks, as plain objects with their annotations, but for tests (helm.sh/hook: test),
which Argo CD and Flux leave out too: they are for `helm test` to run, not for a cluster to have. There is no cluster:
`lookup` finds nothing, and a chart sees only what the request says of its version and APIs.
"""

import asyncio
import bisect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from starling.objects import Manifest, ManifestError, Origin, load_objects, refuse_duplicates
from starling.programs import uninterrupted
from starling.rendering.archives import archived, repacked
from starling.rendering.charts import Chart, Dependency, is_packed, list_chart, not_vendored, readable, write_chart
from starling.rendering.errors import NotAllowed, RenderError, ToolFailed
from starling.rendering.request import KUBE_VERSION, Request
from starling.rendering.running import Job, complaint, environment
from starling.rendering.schemas import SCHEMA, check_schema
from starling.rendering.tree import named

__all__ = ["arguments", "prepare_chart", "template", "with_sources"]

COPY: Final = "chart"
_SOURCE: Final = re.compile(rb"^---\n# Source: (.+)$", re.MULTILINE)


def prepare_chart(root: Path, folder: Path, most: int, *, allow_remote: bool) -> Chart:
    """The chart in a folder, of `most` bytes at most, checked to need nothing that it may not have."""
    chart = list_chart(root, folder, most)
    called = named(root, folder)
    if chart.missing and not allow_remote:
        raise not_vendored(called, chart.missing[0])
    for path, text in _schemas(chart):
        check_schema(text, f"{called}/{path}", allow_remote=allow_remote)
    return chart


def _schemas(chart: Chart, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, bytes]]:
    """The schemas of a chart and all that it depends on; of what several depend on, once."""
    seen = set() if seen is None else seen
    if id(chart) in seen:
        return
    seen.add(id(chart))
    for path, source in chart.files.items():
        if PurePosixPath(path).name == SCHEMA:
            yield f"{prefix}{path}", source.read_bytes()
        elif is_packed(path):
            yield from _packed_schemas(source, f"{prefix}{path}")
    for each in chart.local:
        yield from _schemas(each, f"{prefix}charts/{each.name}/", seen)


def _packed_schemas(file: Path, path: str) -> Iterator[tuple[str, bytes]]:
    found = readable(lambda data: archived(data, SCHEMA), file.read_bytes(), path)
    yield from ((f"{path}/{name}", text) for name, text in found)


def _check_pulled(charts: Path, called: str, most: int) -> None:
    """Look through what was fetched into charts/ as through what was there before."""
    for file in sorted(charts.glob("*.tgz")):
        path = f"charts/{file.name}"
        most -= file.stat().st_size
        if most < 0:
            raise RenderError(f"what was fetched for {called} is more than may be read at once, up to {path}")
        for name, text in _packed_schemas(file, path):
            check_schema(text, f"{called}/{name}", allow_remote=True)
        file.write_bytes(readable(repacked, file.read_bytes(), path))


async def template(job: Job, chart: Chart, request: Request) -> list[Manifest]:
    """The manifests of a chart, in Helm's order."""
    release = request.release_name or (job.folder.name if job.folder != job.root else chart.name)
    variables = environment(job.own / "home", network=request.allow_remote)
    places = {str(job.own / COPY): job.called, str(job.own): "…", str(job.root): ""}
    # To its end: a thread that goes on writing would leave files behind.
    await uninterrupted(asyncio.create_task(asyncio.to_thread(_write, chart, request, job.own)))
    for each in chart.missing:
        done = await job.run(_pull(each, job.called), variables)
        if done.code != 0:
            said = complaint(done.complaints, places)
            raise ToolFailed(f"helm can't fetch the dependency {each.name} of {job.called}: {said}")
    if chart.missing:
        charts = job.own / COPY / "charts"
        checking = asyncio.to_thread(_check_pulled, charts, job.called, job.limits.size)
        await uninterrupted(asyncio.create_task(checking))
    done = await job.run(arguments(request, release), variables)
    if done.code != 0:
        said = complaint(done.complaints, places)
        hint = None
        if "incompatible with Kubernetes" in said:
            hint = "say which Kubernetes it is for: kube_version, or --kube-version on the command line"
        raise ToolFailed(f"helm can't render {job.called}: {said or f'it ended with {done.code}'}", hint=hint)
    return await asyncio.to_thread(_read, done.output, job.called)


def arguments(request: Request, release: str) -> list[str]:
    """Helm's arguments for a request; files of values are numbered in the folder where it runs."""
    found = ["template", "--namespace", request.namespace or "default"]
    found += ["--kube-version", request.kube_version or KUBE_VERSION]
    found += ["--include-crds", "--skip-tests"]
    for version in request.api_versions:
        found += ["--api-versions", version]
    for number in range(len(request.values)):
        found += ["--values", _values_file(number)]
    for setting in request.settings:
        found += ["--set", setting]
    return [*found, "--", release, f"./{COPY}"]


def _pull(wanted: Dependency, called: str) -> list[str]:
    found = ["pull", "--destination", f"./{COPY}/charts"]
    if wanted.version:
        found += ["--version", wanted.version]
    if wanted.repository.startswith("oci://"):
        return [*found, "--", f"{wanted.repository.rstrip('/')}/{wanted.name}"]
    if not wanted.repository.startswith(("http://", "https://")):
        raise NotAllowed(
            f"{called}: the dependency {wanted.name} comes from {wanted.repository or 'nowhere'}, which is no URL",
            hint=f"give it as https://… or oci://…, or vendor it: helm dependency update {called}",
        )
    return [*found, "--repo", wanted.repository, "--", wanted.name]


def _values_file(number: int) -> str:
    return f"values-{number}.json"


def _write(chart: Chart, request: Request, own: Path) -> None:
    write_chart(chart, own / COPY)
    (own / COPY / "charts").mkdir(exist_ok=True)
    for number, values in enumerate(request.values):
        (own / _values_file(number)).write_bytes(_encoded(values))


def _encoded(values: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(values)
    except (TypeError, ValueError) as error:
        raise RenderError(f"values must be what JSON can hold: {error}") from error


def _read(output: bytes, called: str) -> list[Manifest]:
    try:
        return with_sources(output, called)
    except ManifestError as error:
        raise ToolFailed(f"what helm makes of {called} can't be used: {error.message}", hint=error.hint) from error


def with_sources(output: bytes, called: str) -> list[Manifest]:
    """The manifests that Helm printed, each with the template that it says it is from."""
    starts: list[int] = []
    sources: list[str] = []
    line = counted = 0
    for found in _SOURCE.finditer(output):
        line, counted = line + output.count(b"\n", counted, found.end()), found.end()
        starts.append(line + 1)
        # Helm names it from the chart's name, which needn't be its folder's.
        inner = found[1].decode(errors="replace").strip().partition("/")[2]
        sources.append(inner if called == "." else f"{called}/{inner}")
    manifests = []
    for document in load_objects(output):
        number = bisect.bisect_right(starts, document.origin.line) - 1
        source = sources[number] if number >= 0 else called
        try:
            manifests.append(Manifest(document.value, Origin(source)))
        except ManifestError as error:
            raise ManifestError(error.problem, Origin(source), hint=error.hint) from error
    refuse_duplicates(manifests)
    return manifests
