"""Real Kubernetes control planes on this machine, as plain processes, and a git server over smart HTTP.

A LocalCluster is a folder: certificates, etcd's data, logs, a kubeconfig. LocalClusters keeps any number of
them under one root and is all that most callers need:

    clusters = LocalClusters()
    hub, edge = await clusters.up("hub", "edge", workloads=True)
    … connect with hub.kubeconfig …
    await clusters.down()

How it goes: `binaries` finds a program for each component, or `build` makes one from Kubernetes' own sources
with Go. `cluster` writes what the components read, with certificates from `pki`; `commands` says how they are
called; `processes` starts them detached and finds them again by a mark in their environment; `start` puts this
in order and waits until `probe` finds nothing missing. All that is remembered lies in the folder and all that
runs is read from /proc, so any command may be killed at any instant and the next one carries on.

GitServer serves repositories by `git http-backend`, for tests and demonstrations.
"""

from starling.local.binaries import Binaries, build, find_binaries
from starling.local.cluster import LocalCluster
from starling.local.clusters import LocalClusters
from starling.local.errors import LocalError, ToolMissingError
from starling.local.git_server import GitServer

__all__ = [
    "Binaries",
    "GitServer",
    "LocalCluster",
    "LocalClusters",
    "LocalError",
    "ToolMissingError",
    "build",
    "find_binaries",
]
