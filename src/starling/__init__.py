"""Starling keeps arbitrary numbers of Kubernetes clusters synchronised to git.

The layers, top to bottom; each may use those below it and none above (`make check` holds it to that):

    cli          commands
    api          the kinds, and the CRDs generated from them
    kube         the only code that speaks HTTP to API servers
    objects      manifests, keys, YAML, digests      aio  clock and backoff      errors  the error tree

    local        real Kubernetes control planes on this machine; uses nothing above kube

Each package's docstring is its tour.
"""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("starling")
