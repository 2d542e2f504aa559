"""Which of a server's refusals say that a field can't be changed: for no other does force delete an object."""

import pytest

from starling.engine.diff import is_immutability
from starling.kube import ApiError, Cause, Forbidden, Invalid


def invalid(field: str, words: str) -> Invalid:
    """The refusal of a field."""
    error = Invalid("apply it", "it is invalid")
    error.causes = (Cause(field, "FieldValueInvalid", words),)
    return error


@pytest.mark.parametrize(
    "words",
    [
        "Forbidden: field is immutable when `immutable` is set",
        'Invalid value: {"matchLabels":{"app":"web"}}: field is immutable',
        "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template' are forbidden",
        'Invalid value: {"kind":"Role","name":"x"}: cannot change roleRef',
        "Forbidden: spec is immutable after creation except resources.requests",
        'Invalid value: "object": size may not be changed',
        'Invalid value: "Cluster": field is immutable',
    ],
)
def test_a_field_that_can_not_be_changed(words: str) -> None:
    """In the words of Kubernetes, or of a CRD's rule."""
    assert is_immutability(invalid("spec", words))


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("apply ConfigMap a/immutable-config", 'configmaps "immutable-config" is forbidden: no such right'),
        Forbidden("apply it", 'admission webhook "freeze" denied the request: may not be changed during the freeze'),
        invalid("", "it may not be updated today"),
        Invalid("apply it", 'ConfigMap "immutable-config" is invalid'),
        invalid("metadata.labels", 'Invalid value: "is immutable": no label'),
        invalid("spec", 'Invalid value: "\\"immutable\\"": must be 1 to 9'),
    ],
    ids=["a right", "a webhook", "a policy", "a name", "a value", "a quoted value"],
)
def test_another_refusal(error: ApiError) -> None:
    """However its names and values read, and whatever someone's policy says of today."""
    assert not is_immutability(error)
