"""Objects decode to their kind and encode to what a person would have written."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.api import ObjectMeta, RolloutPolicy, Source
from starling.api.v1alpha1 import GitRef, GitSource, LabelSelector, Rollout, RolloutStage, RolloutWindow, SourceSpec
from starling.api.v1alpha1.fields import Duration, NumberOrPercent, PositiveNumberOrPercent

MAIN = GitSource(url="https://git.example/platform.git", ref=GitRef(branch="main"))


def test_encoding_leaves_defaults_out() -> None:
    """An encoded object has its apiVersion and kind, and of the rest only what differs from the default."""
    source = Source(metadata=ObjectMeta(name="platform", namespace="apps"), spec=SourceSpec(git=MAIN))
    assert json.loads(msgspec.json.encode(source)) == {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "Source",
        "metadata": {"name": "platform", "namespace": "apps"},
        "spec": {"git": {"url": "https://git.example/platform.git", "ref": {"branch": "main"}}},
    }


def test_field_names_are_camel_case() -> None:
    """Field names are camelCase on the wire, and `from`, a word of Python's, is itself."""
    policy = Rollout(
        max_failures="5%",
        stages=(RolloutStage(name="eu", selector=LabelSelector(match_labels={"region": "eu"})),),
        windows=(RolloutWindow(from_="09:00"),),
    )
    assert json.loads(msgspec.json.encode(policy)) == {
        "maxFailures": "5%",
        "stages": [{"name": "eu", "selector": {"matchLabels": {"region": "eu"}}}],
        "windows": [{"from": "09:00"}],
    }


def test_decoding_ignores_what_it_does_not_know() -> None:
    """Fields of a newer version, and metadata that we don't read, are skipped."""
    data = {
        "apiVersion": "starling.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "safe", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"onFailure": "Rollback", "invented": True},
        "status": {"observedGeneration": 4, "invented": {}},
    }
    policy = msgspec.json.decode(json.dumps(data), type=RolloutPolicy)
    assert policy.metadata.name == "safe"
    assert policy.spec.on_failure == "Rollback"
    assert policy.spec.timeout == "10m"
    assert policy.status.observed_generation == 4


@pytest.mark.parametrize(
    ("wrong", "path"), [({"kind": "Secret"}, "$.kind"), ({"apiVersion": "v1"}, "$.apiVersion")], ids=["kind", "version"]
)
def test_another_kind_is_refused(wrong: dict[str, str], path: str) -> None:
    """An object of another kind or version doesn't decode, and the error says which it was."""
    data = {"apiVersion": "starling.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {}, "spec": {}} | wrong
    with pytest.raises(msgspec.ValidationError, match=f"at `\\{path}`"):
        msgspec.convert(data, RolloutPolicy)


def accepts(annotation: object, value: object) -> bool:
    """Whether a value decodes to that type."""
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


@given(st.integers(-200, 300))
def test_numbers_and_percentages_have_bounds(number: int) -> None:
    """A share is at least 0 or 1, and at most 100 when it is a percentage."""
    assert accepts(NumberOrPercent, number) == (number >= 0)
    assert accepts(PositiveNumberOrPercent, number) == (number >= 1)
    assert accepts(NumberOrPercent, f"{number}%") == (0 <= number <= 100)
    assert accepts(PositiveNumberOrPercent, f"{number}%") == (1 <= number <= 100)
    assert not accepts(NumberOrPercent, str(number))


parts = st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h"])).map(lambda each: f"{each[0]}{each[1]}")


@given(st.lists(parts, min_size=1, max_size=4).map("".join), st.sampled_from(["", "-", " ", "d", "1"]))
def test_durations_are_numbers_with_units(duration: str, extra: str) -> None:
    """Numbers with units make a duration; a sign, a space, a day or a bare number spoil it."""
    assert accepts(Duration, duration)
    if extra:
        assert not accepts(Duration, duration + extra)
