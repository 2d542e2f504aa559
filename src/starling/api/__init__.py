"""The kinds of `starling.dev`, and what follows from them.

A kind is a frozen msgspec Struct, written down once:

    v1alpha1/       the kinds, one file each or nearly
    meta            what every object has: ObjectMeta, Condition, Status, the base Resource
    conditions      Ready, Reconciling and Stalled from how something went
    durations       5m in seconds
    declaration     the words to declare with: doc, checked, rules, exactly_one_of, keyed_by, kind, Column

From these Structs alone follow

    schema          the structural schema, inlined          Struct → dict
    crds            the CustomResourceDefinitions           KINDS → documents
    installation    all a hub must hold: CRDs, namespace, account, roles, the controller
    enrolment       what a cluster must hold, and what lets one dial in to a hub
    documents       what these two are written in       deployment   how our own processes run there
    reference       the field reference in docs/reference/kinds.md

The API server checks objects by the generated schema and CEL rules, so code that decodes one with
`msgspec.json.decode(data, type=Source)` finds it valid and with its defaults filled in. Unknown fields are ignored when
decoding, defaults left out when encoding. A field without a description can't be generated.
"""

from starling.api.crds import KINDS, crds
from starling.api.declaration import Declaration
from starling.api.documents import PLATFORM_NAMESPACE
from starling.api.durations import seconds
from starling.api.installation import CONTROLLER, installation
from starling.api.meta import Condition, ObjectMeta, OwnerReference, Resource, Status
from starling.api.reference import reference
from starling.api.schema import SchemaError
from starling.api.v1alpha1 import (
    Assemblage,
    Cluster,
    Module,
    ProxyAssemblage,
    RolloutPolicy,
    Source,
    Sync,
    SyncGroup,
    Upstream,
)

__all__ = [
    "CONTROLLER",
    "KINDS",
    "PLATFORM_NAMESPACE",
    "Assemblage",
    "Cluster",
    "Condition",
    "Declaration",
    "Module",
    "ObjectMeta",
    "OwnerReference",
    "ProxyAssemblage",
    "Resource",
    "RolloutPolicy",
    "SchemaError",
    "Source",
    "Status",
    "Sync",
    "SyncGroup",
    "Upstream",
    "crds",
    "installation",
    "reference",
    "seconds",
]
