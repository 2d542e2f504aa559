"""An entry's Sync says what the entry says, whole, and belongs to its Assemblage."""

from typing import Any

import msgspec

from starling.api import Assemblage
from starling.api.v1alpha1 import Entry
from starling.controllers.assemblage import sync_document, sync_spec

ENTRY: dict[str, Any] = {
    "name": "web",
    "unit": "prod/team/Module.web@c1",
    "target": "t1:a",
    "admission": 4,
    "source": {"git": {"url": "https://git.example/x", "commit": "1" * 40}},
    "package": {"helm": {"values": {"a": {"b": 1}}}},
    "values": [{"name": "REGION", "value": "eu"}],
    "interval": "7m",
}


def test_an_entry_s_sync_says_all_of_it() -> None:
    """All fields are there, those with defaults too, but for the name, the admission and what people may set."""
    metadata = {"name": "prod", "namespace": "team", "uid": "u1"}
    owner = msgspec.convert({"kind": "Assemblage", "metadata": metadata, "spec": {"instance": "prod"}}, Assemblage)
    spec = sync_spec(msgspec.convert(ENTRY, Entry))
    document = msgspec.json.decode(msgspec.json.encode(sync_document(owner, "web", spec)))
    assert {key: document["spec"][key] for key in ENTRY if key not in ("name", "admission")} == {
        key: value for key, value in ENTRY.items() if key not in ("name", "admission")
    }
    assert document["spec"]["force"] is False
    assert document["spec"]["prune"] is True
    assert {"name", "admission", "suspend"}.isdisjoint(document["spec"])
    reference = document["metadata"]["ownerReferences"][0]
    assert (reference["uid"], reference["controller"], reference["blockOwnerDeletion"]) == ("u1", True, True)
    assert msgspec.convert(document["spec"], type(spec)) == spec
