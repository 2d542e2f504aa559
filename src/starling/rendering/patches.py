"""Patches put onto what was rendered, whatever that was rendered from, by kustomize itself."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from starling.objects import Manifest, ManifestError, dump_all, load_manifests
from starling.rendering.errors import ToolFailed
from starling.rendering.running import Job, complaint, environment

__all__ = ["patch_manifests"]

RENDERED: Final = "rendered.yaml"


async def patch_manifests(
    job: Job, manifests: Iterable[Manifest], patches: Sequence[Mapping[str, Any]]
) -> list[Manifest]:
    """The manifests with these patches, each as kustomize has it: a `patch`, and the `target` that it is for.

    The job's folder is the run's own, and there is nothing else in it: a patch has no file to refer to.
    """
    given = list(manifests)
    await asyncio.to_thread(_write, job, given, patches)
    done = await job.run((str(job.folder),), environment(None, network=False))
    if done.code != 0:
        said = complaint(done.complaints, {str(job.folder): "", str(job.own): "…"})
        raise ToolFailed(f"kustomize can't patch what was rendered: {said or f'it ended with {done.code}'}")
    try:
        made = await asyncio.to_thread(load_manifests, done.output)
    except ManifestError as error:
        raise ToolFailed(f"what patches make of it can't be used: {error.message}", hint=error.hint) from error
    origins = {manifest.key: manifest.origin for manifest in given}
    return [Manifest(each.content, origins.get(each.key, each.origin)) for each in made]


def _write(job: Job, manifests: Iterable[Manifest], patches: Sequence[Mapping[str, Any]]) -> None:
    job.folder.mkdir()
    (job.folder / RENDERED).write_text(dump_all(manifest.content for manifest in manifests), encoding="utf-8")
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [RENDERED],
        "patches": list(patches),
    }
    (job.folder / "kustomization.yaml").write_bytes(msgspec.json.encode(overlay))
