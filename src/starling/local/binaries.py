"""Where each component's program comes from: KUBEBUILDER_ASSETS, the PATH, or our own build."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starling.local.build import build_control_plane
from starling.local.errors import LocalError

__all__ = ["Binaries", "build", "find_binaries"]


@dataclass(frozen=True, slots=True)
class Binaries:
    """How to call each component: a program, and the arguments that choose the component within it."""

    commands: Mapping[str, tuple[str, ...]]

    def command(self, component: str) -> list[str]:
        """Give the beginning of the component's command line."""
        return list(self.commands[component])

    def ready_made(self) -> dict[str, str]:
        """Give, by component, the programs that the machine already had: those that are nothing but the component."""
        return {component: program for component, (program, *chosen) in self.commands.items() if not chosen}


COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
ESSENTIAL = ("etcd", "kube-apiserver")


async def build(report: Callable[[str], None]) -> Binaries:
    """Give our own build of all components, made now if there is none; it takes some minutes, once."""
    program = await build_control_plane(report)
    return Binaries({component: (str(program), component) for component in COMPONENTS})


async def find_binaries(components: Iterable[str], report: Callable[[str], None]) -> Binaries:
    """Give a program for each component: from KUBEBUILDER_ASSETS, else the PATH, else our own build."""
    there = {component: program_for(component) for component in components}
    found = {component: (program,) for component, program in there.items() if program}
    if len(found) == len(there):
        return Binaries(found)
    return Binaries({**(await build(report)).commands, **found})


def program_for(component: str) -> str | None:
    """Give the program that the machine already has for a component."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        check_assets(Path(assets))
        if program := shutil.which(component, path=assets):
            return str(Path(program).absolute())
    if all(shutil.which(essential) for essential in ESSENTIAL):
        return shutil.which(component)
    return None


def check_assets(folder: Path) -> None:
    """Refuse a KUBEBUILDER_ASSETS that points at the wrong place, rather than quietly using something else."""
    missing = [component for component in ESSENTIAL if not shutil.which(component, path=str(folder))]
    if missing:
        raise LocalError(
            f"KUBEBUILDER_ASSETS is {folder}, where there is no {' and no '.join(missing)}",
            hint="point it at a folder with etcd and kube-apiserver, or unset it",
        )
