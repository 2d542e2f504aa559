"""Rendering: from the files of one version to exact manifests.

The nouns:

    Request, Package    what to make of a tree: a path, and whether it is a kustomization, a chart or plain manifests
    Rendered            manifests in order, and the content digest that rollouts compare
    Renderer            what does it: few at a time, each thing once for any number of clusters
    Cache               what was rendered before, in memory and on disk
    Tools, Limits       the kustomize and helm to use (found or built if not given); what one run may take
    ValuesFrom          a ConfigMap or Secret that holds values of a chart; `resolve` reads them by a given lookup
    substitute          variables put into manifests, per cluster and after all else, in the language that Flux has

How data goes through: `tree` finds the path and makes sure that nothing leads out of the tree, `detect` sees what is
there. `plain` reads files as they are. `kustomizations` looks through all that a kustomization refers to before
`kustomize` runs; `charts` lists what a chart is made of (by the rules of `helmignore`), `schemas` what its schema
refers to, and `helm` renders a copy of it. `patches` puts patches onto what came of either. `running` is one run of a
tool, in a folder and an environment of its own, from which nothing can be fetched unless the request allows it.
`content` is the digest of the result. Then `substitution` looks for texts with variables, and `envsubst` is their
language.

    renderer = Renderer(cache=Cache(folder))
    rendered = await renderer.render(tree, digest, Request(path="apps/podinfo"))
    manifests = substitute(rendered.manifests, {"REGION": "eu"}, strict=True)

Nothing here knows clusters, repositories or credentials. Errors are drawn in `errors`; names in them count from the
tree's root.
"""

from starling.rendering.cache import Cache
from starling.rendering.errors import (
    NotAllowed,
    PathMissing,
    RenderError,
    SubstitutionError,
    ToolFailed,
    ToolMissing,
    ValuesMissing,
    VariableNotSet,
)
from starling.rendering.render import Renderer
from starling.rendering.request import KUBE_VERSION, Package, Rendered, Request
from starling.rendering.running import Limits
from starling.rendering.substitution import substitute
from starling.rendering.tools import Tools, find_tools
from starling.rendering.values import ValuesFrom, resolve

__all__ = [
    "KUBE_VERSION",
    "Cache",
    "Limits",
    "NotAllowed",
    "Package",
    "PathMissing",
    "RenderError",
    "Rendered",
    "Renderer",
    "Request",
    "SubstitutionError",
    "ToolFailed",
    "ToolMissing",
    "Tools",
    "ValuesFrom",
    "ValuesMissing",
    "VariableNotSet",
    "find_tools",
    "resolve",
    "substitute",
]
