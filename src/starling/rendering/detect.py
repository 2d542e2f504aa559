"""What a folder is, by the files in it.

    kustomization.yaml, kustomization.yml, Kustomization   kustomize
    Chart.yaml                                             helm
    else                                                   plain

A folder that is both isn't guessed at: Argo CD takes it for a kustomization, Flux for whichever kind of object names
it, and the wrong guess would have everything else pruned. The package says which.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from starling.rendering.errors import RenderError
from starling.rendering.request import Package

__all__ = ["CHART", "KUSTOMIZATIONS", "detect", "package_of"]

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART: Final = "Chart.yaml"


def package_of(names: Collection[str], called: str) -> Package:
    """How the folder that has these files is rendered; RenderError if that is unclear."""
    kustomization = next((name for name in KUSTOMIZATIONS if name in names), None)
    if kustomization and CHART in names:
        raise RenderError(
            f"{called} has both {kustomization} and {CHART}: it may be a kustomization or a chart",
            hint="say which it is: package kustomize or package helm",
        )
    if kustomization:
        return Package.KUSTOMIZE
    return Package.HELM if CHART in names else Package.PLAIN


def detect(place: Path, wanted: Package | None, called: str) -> Package:
    """How a file or folder is rendered: as is wanted, if it can be, or else by what is in it."""
    if place.is_file():
        if wanted in (Package.KUSTOMIZE, Package.HELM):
            raise RenderError(f"{called} is a file; {wanted} takes a folder", hint="give the folder that it is in")
        return Package.PLAIN
    names = frozenset(entry.name for entry in place.iterdir() if entry.is_file())
    if wanted is None:
        return package_of(names, called)
    if wanted is Package.HELM and CHART not in names:
        raise RenderError(f"{called} is no chart: it has no {CHART}", hint="leave the package out to have it detected")
    if wanted is Package.KUSTOMIZE and names.isdisjoint(KUSTOMIZATIONS):
        raise RenderError(
            f"{called} is no kustomization: it has no {KUSTOMIZATIONS[0]}",
            hint="leave the package out to have it detected",
        )
    return wanted
