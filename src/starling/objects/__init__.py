"""Objects as people write them: what they are called, what is in them, where they stand.

The nouns:

    ObjectKey         an object's identity in a cluster: group, kind, namespace, name
    GroupVersionKind  a kind at one API version
    Origin            file, document and line
    Manifest          one object that someone wants in a cluster: content, key, origin, digest
    Document          one document of a file, whatever is in it
    ManifestError     what is wrong with a file, and where

How data goes through: `load_manifests(text, file)` cuts a text into documents, reads each exactly as Kubernetes' Go
tools do (the rules stand in `reader` and `scalars`; a differential test holds us to them), takes lists apart, and
refuses what is no object or is there twice. `refuse_duplicates` does the last for manifests of many files.
`dump` and `dump_all` write YAML that we and Go read back as the same value.

`digest(value)` names a JSON value by its content, the same everywhere; `short_digest` is for compact records.
Everything here is a pure function or a frozen value; nothing opens a file or a connection.
"""

from starling.objects.digests import canonical_json, digest, short_digest
from starling.objects.identity import GroupVersionKind, ObjectKey
from starling.objects.loading import load_manifests, load_objects
from starling.objects.manifest import Manifest, refuse_duplicates
from starling.objects.origin import ManifestError, Origin
from starling.objects.reader import Document, load_documents
from starling.objects.writer import dump, dump_all

__all__ = [
    "Document",
    "GroupVersionKind",
    "Manifest",
    "ManifestError",
    "ObjectKey",
    "Origin",
    "canonical_json",
    "digest",
    "dump",
    "dump_all",
    "load_documents",
    "load_manifests",
    "load_objects",
    "refuse_duplicates",
    "short_digest",
]
