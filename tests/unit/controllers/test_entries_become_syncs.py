"""An entry's Sync says what the entry says, whole, and belongs to its Assemblage; what can't be written is told."""

from typing import Any

import msgspec
import pytest

from starling.api import Assemblage
from starling.api.v1alpha1 import Entry, EntryStatus
from starling.controllers.assemblage import Outcome, again, sync_document, sync_spec, told
from starling.errors import InputError, StarlingError
from starling.kube import BadRequest, Conflict, Forbidden, Invalid, ServerError, TooLarge, Unreachable

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


KNOWN = EntryStatus(name="web", target="t1:a", revision="sha1:1", state="succeeded", readiness="Current")
REFUSED = [
    BadRequest("apply", "denied"), Forbidden("apply", "quota"), Invalid("apply", "skew"), TooLarge("apply", "huge"),
    InputError("no"),
]  # fmt: skip
PASSING = [Conflict("apply", "another"), ServerError("apply", "webhook"), Unreachable("apply", "refused")]


@pytest.mark.parametrize("error", [*REFUSED, *PASSING], ids=lambda error: type(error).__name__)
def test_an_entry_that_can_not_be_written_is_never_told_as_succeeded(error: StarlingError) -> None:
    """It failed if its Sync is refused, and is on its way otherwise; the message fits, what it ran last stays told."""
    status = told(KNOWN, error)
    assert (status.state, status.readiness) == (("failed", "Failed") if error in REFUSED else ("updating", "Current"))
    assert (status.name, status.target, status.revision, status.message) == ("web", "t1:a", "sha1:1", error.message)
    assert told(KNOWN, InputError("x" * 2000, hint="y")).message == "x" * 1024
    assert told(KNOWN, InputError("no", hint="do so")).message == "no; do so"


def test_refusals_wait_and_the_rest_is_tried_again() -> None:
    """What may pass is raised, whatever else was refused; refusals alone are looked at later."""
    fine, refused, passing = Outcome(KNOWN), Outcome(KNOWN, REFUSED[0]), Outcome(KNOWN, PASSING[0])
    assert again([fine]) is None
    result = again([fine, refused])
    assert result is not None
    assert result.requeue_after is not None
    with pytest.raises(Conflict):
        again([refused, fine, passing])
