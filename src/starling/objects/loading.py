"""Reads manifests out of files: documents, with lists of objects taken apart."""

from collections.abc import Iterator
from typing import Any

from starling.objects.manifest import Manifest, refuse_duplicates
from starling.objects.origin import ManifestError, Origin
from starling.objects.reader import Document, load_documents

__all__ = ["load_manifests", "load_objects"]


def load_manifests(text: bytes | str, file: str = "") -> list[Manifest]:
    """The objects in a YAML or JSON text, in order; ManifestError if one is unreadable, no object, or there twice.

    A `List`, or a `…List` with items, stands for its items. As with kubectl, an item of a `PodList` that doesn't say
    its kind is a Pod of the list's apiVersion.
    """
    manifests = [Manifest(document.value, document.origin) for document in load_objects(text, file)]
    refuse_duplicates(manifests)
    return manifests


def load_objects(text: bytes | str, file: str = "") -> list[Document]:
    """The same before it is asked what each is, for questions about objects that needn't be different ones."""
    return [each for document in load_documents(text, file) for each in _objects(document)]


def _objects(document: Document) -> Iterator[Document]:
    if not _is_list(document.value):
        yield document
        return
    for number, item in enumerate(document.value.get("items") or []):
        origin = document.origin
        if number < len(document.item_lines):
            origin = Origin(origin.file, origin.document, document.item_lines[number])
        yield from _objects(Document(_item(document.value, item, origin), origin))


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(kind := value.get("kind"), str):
        return False
    return (kind == "List" and value.get("items") is None) or (
        kind.endswith("List") and isinstance(value.get("items"), list)
    )


def _item(parent: dict[str, Any], item: Any, origin: Origin) -> Any:
    if not isinstance(item, dict):
        raise ManifestError(f"an item of {parent['kind']} is no object", origin)
    kind = parent["kind"].removesuffix("List")
    if kind and "kind" not in item and "apiVersion" not in item:
        return {"apiVersion": parent.get("apiVersion"), "kind": kind, **item}
    return item
