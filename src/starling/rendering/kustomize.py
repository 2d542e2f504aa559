"""Kustomizations, built by kustomize itself."""

import asyncio

from starling.objects import Manifest, ManifestError, Origin, load_manifests
from starling.rendering.detect import KUSTOMIZATIONS
from starling.rendering.errors import ToolFailed
from starling.rendering.kustomizations import check_kustomizations
from starling.rendering.running import Job, complaint, environment
from starling.rendering.tree import named

__all__ = ["build_kustomization", "run_kustomize"]


async def build_kustomization(job: Job, *, allow_remote: bool) -> list[Manifest]:
    """The manifests of a kustomization in the tree, in kustomize's order."""
    await asyncio.to_thread(check_kustomizations, job.root, job.folder, allow_remote=allow_remote)
    output = await run_kustomize(job, allow_remote=allow_remote)
    return await asyncio.to_thread(_read, output, job)


async def run_kustomize(job: Job, *, allow_remote: bool) -> bytes:
    """What kustomize prints. It reads files below a kustomization's own folder only, as is its rule; bases needn't be.

    Plugins, functions and charts stay off: nothing turns them on, and no setting of ours could.
    """
    variables = environment(job.own / "home" if allow_remote else None, network=allow_remote)
    done = await job.run(("--load-restrictor", "LoadRestrictionsRootOnly", str(job.folder)), variables)
    if done.code != 0:
        said = complaint(done.complaints, {str(job.root): "", str(job.own): "…"})
        hint = None
        if "is not in or below" in said:
            hint = (
                "kustomize reads files below a kustomization's own folder only: give the file's folder one, as a base"
            )
        raise ToolFailed(f"kustomize can't build {job.called}: {said or f'it ended with {done.code}'}", hint=hint)
    return done.output


def _read(output: bytes, job: Job) -> list[Manifest]:
    file = next((file for name in KUSTOMIZATIONS if (file := job.folder / name).is_file()), job.folder)
    called = named(job.root, file)
    try:
        manifests = load_manifests(output)
    except ManifestError as error:
        raise ToolFailed(f"what kustomize makes of {called} can't be used: {error.message}", hint=error.hint) from error
    return [Manifest(manifest.content, Origin(called)) for manifest in manifests]
