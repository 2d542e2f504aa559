"""SyncTemplate: how to sync one thing. Sync, Module and the assemblages all say it with this."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from starling.api.declaration import ATOMIC_MAP, Rule, checked, doc, exactly_one_of, keyed_by, matching, rules
from starling.api.meta import Fields
from starling.api.v1alpha1.fields import LocalSecretReference, ObjectName, PositiveDuration
from starling.api.v1alpha1.source import GitCommit, GitRefName, GitUrl, IgnorePattern, Revision

__all__ = [
    "MOST_PATCHES",
    "Binding",
    "CredentialsReference",
    "ExactGit",
    "HelmPackage",
    "IgnoredDifferences",
    "KustomizePackage",
    "ObjectFieldReference",
    "Package",
    "Patch",
    "PatchTarget",
    "PlainPackage",
    "SourceReference",
    "SyncTemplate",
    "ValuesReference",
]

MOST_PATCHES = 16

TreePath = Annotated[
    str,
    Meta(max_length=1024),
    checked(
        Rule(
            r"!self.startsWith('/') && !self.matches(r'(^|/)\.\.(/|$)')",
            "must be a path inside the repository: neither absolute nor with .. in it",
        )
    ),
]
NamespaceName = Annotated[str, Meta(max_length=63, pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$")]
BindingName = Annotated[
    str,
    Meta(min_length=1, max_length=128),
    matching("^[A-Za-z_][A-Za-z0-9_]*$", "must be a name such as REGION: letters, digits and _, no digit first"),
]
JsonPointer = Annotated[str, Meta(max_length=1024), matching("^/", "must be a JSON pointer such as /spec/replicas")]


class CredentialsReference(LocalSecretReference, frozen=True, kw_only=True):
    """A Secret with credentials, or an entry of one that holds several."""

    key: Annotated[
        str,
        Meta(max_length=253),
        doc("The entry that holds the credentials as one JSON document; absent: the Secret is the credentials."),
    ] = ""


class ExactGit(Fields, frozen=True, kw_only=True):
    """One exact commit of a git repository."""

    url: Annotated[GitUrl, doc("Where the repository is: an https, http, ssh or file URL, or user@host:path.")]
    commit: Annotated[GitCommit, doc("The commit, by its full id.")]
    tag: Annotated[GitRefName | None, doc("The tag or branch that it was found by; told, not used.")] = None
    secret_ref: Annotated[CredentialsReference | None, doc("The Secret with the credentials, as in a Source.")] = None
    submodules: Annotated[bool, doc("Whether to fetch the repository's submodules too.")] = False
    ignore: Annotated[
        tuple[IgnorePattern, ...], Meta(max_length=256), doc('Files to leave out, as .gitignore has them: "docs/**".')
    ] = ()


@rules(exactly_one_of("name", "git"))
class SourceReference(Fields, frozen=True, kw_only=True):
    """What to sync: a Source by its name, or one exact commit."""

    name: Annotated[ObjectName | None, doc("A Source in the same namespace.")] = None
    git: Annotated[ExactGit | None, doc("One exact commit of a git repository.")] = None


class ValuesReference(Fields, frozen=True, kw_only=True):
    """A ConfigMap or Secret, in the namespace of the Sync, that holds values of a chart."""

    kind: Annotated[Literal["ConfigMap", "Secret"], doc("What holds them.")]
    name: Annotated[ObjectName, doc("Its name.")]
    values_key: Annotated[str, Meta(max_length=253), doc("The key in it.")] = "values.yaml"
    target_path: Annotated[
        str, Meta(max_length=250), doc("Where in the values the text belongs, as for helm --set; absent: it is all.")
    ] = ""
    optional: Annotated[bool, doc("Whether it may be missing.")] = False


class KustomizePackage(Fields, frozen=True, kw_only=True):
    """The path is a kustomization."""


class PlainPackage(Fields, frozen=True, kw_only=True):
    """The path holds manifests, taken as they are."""


class HelmPackage(Fields, frozen=True, kw_only=True):
    """The path is a Helm chart."""

    release_name: Annotated[str, Meta(max_length=53), doc("The release's name; absent: the chart's folder's.")] = ""
    values: Annotated[dict[str, Any], ATOMIC_MAP, doc("Values; they win over those of valuesFrom.")] = field(
        default_factory=dict
    )
    values_from: Annotated[
        tuple[ValuesReference, ...],
        Meta(max_length=32),
        doc("Values in ConfigMaps and Secrets of the cluster that has the Sync; later ones win."),
    ] = ()


@rules(exactly_one_of("kustomize", "helm", "plain"))
class Package(Fields, frozen=True, kw_only=True):
    """How files become manifests: exactly one of kustomize, helm and plain."""

    kustomize: Annotated[KustomizePackage | None, doc("It is a kustomization.")] = None
    helm: Annotated[HelmPackage | None, doc("It is a Helm chart.")] = None
    plain: Annotated[PlainPackage | None, doc("It is manifests, taken as they are.")] = None


class PatchTarget(Fields, frozen=True, kw_only=True):
    """The objects that a patch is for: regular expressions, and selectors; what is left empty matches any object."""

    group: Annotated[str, Meta(max_length=253), doc("Their API group.")] = ""
    version: Annotated[str, Meta(max_length=63), doc("Its version.")] = ""
    kind: Annotated[str, Meta(max_length=253), doc("Their kind.")] = ""
    name: Annotated[str, Meta(max_length=253), doc("Their name.")] = ""
    namespace: Annotated[str, Meta(max_length=253), doc("Their namespace.")] = ""
    label_selector: Annotated[str, Meta(max_length=1024), doc("Their labels, such as app=web.")] = ""
    annotation_selector: Annotated[str, Meta(max_length=1024), doc("Their annotations, in the same way.")] = ""


class Patch(Fields, frozen=True, kw_only=True):
    """A change to what was rendered, as kustomize has it."""

    patch: Annotated[
        str,
        Meta(min_length=1, max_length=16384),
        doc("YAML: a part of an object, merged into those meant, or a list of JSON patch operations."),
    ]
    target: Annotated[PatchTarget | None, doc("The objects meant; absent: the one that the patch names.")] = None


class ObjectFieldReference(Fields, frozen=True, kw_only=True):
    """A field of an object on the hub. For now of the Cluster itself, which is where its labels are."""

    kind: Annotated[Literal["Cluster"], doc("The object's kind.")] = "Cluster"
    name: Annotated[Literal["$(CLUSTER_NAME)"], doc("The object's name.")] = "$(CLUSTER_NAME)"
    field_path: Annotated[JsonPointer, doc("The field, as a JSON pointer such as /metadata/labels/region.")]


@rules(exactly_one_of("value", "objectFieldRef"))
class Binding(Fields, frozen=True, kw_only=True):
    """A value for this cluster, which manifests mention as ${NAME}."""

    name: Annotated[BindingName, doc("Its name; CLUSTER_NAME is always there.")]
    value: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        doc("The value; $(NAME) in it stands for another binding's."),
    ] = None
    object_field_ref: Annotated[ObjectFieldReference | None, doc("A field that the value is taken from.")] = None


class IgnoredDifferences(Fields, frozen=True, kw_only=True):
    """Fields in which objects may differ from git; what is left empty matches any object."""

    group: Annotated[str, Meta(max_length=253), doc("The objects' API group.")] = ""
    kind: Annotated[str, Meta(max_length=63), doc("Their kind.")] = ""
    name: Annotated[str, Meta(max_length=253), doc("Their name.")] = ""
    namespace: Annotated[str, Meta(max_length=63), doc("Their namespace.")] = ""
    json_pointers: Annotated[
        tuple[JsonPointer, ...], Meta(min_length=1, max_length=16), doc("The fields, such as /spec/replicas.")
    ]


class SyncTemplate(Fields, frozen=True, kw_only=True):
    """How to sync one thing."""

    source: Annotated[SourceReference, doc("What to sync: a Source of the same namespace, or one exact commit.")]
    revision: Annotated[
        Revision, doc("Stay at this version, as Source.status.revision has it; absent: follow the Source.")
    ] = ""
    path: Annotated[TreePath, doc("The folder in the repository.")] = "."
    package: Annotated[Package | None, doc("How its files become manifests; absent: see what is there.")] = None
    patches: Annotated[
        tuple[Patch, ...],
        Meta(max_length=MOST_PATCHES),
        doc("Changes to what was rendered, before ${NAME} is replaced in it."),
    ] = ()
    target_namespace: Annotated[
        NamespaceName, doc("The namespace of everything namespaced; absent: as the manifests say.")
    ] = ""
    service_account_name: Annotated[
        str,
        Meta(max_length=253),
        doc("The account to act as, of the Sync's own namespace; absent: starling, or, in starling-system, our own."),
    ] = ""
    bindings: Annotated[
        tuple[Binding, ...], Meta(max_length=64), keyed_by("name"), doc("Values for each cluster.")
    ] = ()
    prune: Annotated[bool, doc("Whether to delete what is no longer in git.")] = True
    allow_empty: Annotated[bool, doc("Whether nothing at all in git may delete everything.")] = False
    force: Annotated[bool, doc("Whether to delete and recreate what can't be changed as wanted.")] = False
    deletion_policy: Annotated[
        Literal["Prune", "Orphan"],
        doc("When this itself is removed: Prune deletes its objects, Orphan leaves them without our marks."),
    ] = "Prune"
    interval: Annotated[PositiveDuration, doc("Apply everything again this often at the latest.")] = "1h"
    timeout: Annotated[PositiveDuration, doc("What is in progress for longer has failed.")] = "5m"
    ignore_differences: Annotated[
        tuple[IgnoredDifferences, ...], Meta(max_length=64), doc("Fields in which objects may differ from git.")
    ] = ()
