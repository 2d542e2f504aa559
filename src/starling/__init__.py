"""Starling keeps arbitrary numbers of Kubernetes clusters synchronised to git.

The layers, top to bottom; each may use those below it and none above (`make check` holds it to that):

    cli          commands
    operator     puts everything together: the hub's controller, a cluster's agent
    controllers  one file per kind: read the world, ask a decision, write the result
    fleet        decisions about many clusters, without I/O: selection, targets, rollouts, assembly, delivery
    runtime      informers, controllers, leader election, events, metrics
    api          the kinds, and the CRDs generated from them
    engine       manifests → clusters: plan, apply, prune, health, diff, drift; a library
    sources      a repository and a version policy → the files of one exact version; a library
    rendering    files → exact manifests: kustomize, helm, plain, substitution; a library
    local        real Kubernetes control planes on this machine
    kube         the only code that speaks HTTP to API servers
    objects      manifests, keys, YAML, digests      aio       clock, backoff, queues, places among workers
    programs     other programs, run and ended       files     private files and locks
    versions     ranges of versions                  errors    the error tree

engine, sources, rendering and local know nothing of one another.

Each package's docstring is its tour.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
