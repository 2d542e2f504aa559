"""Objects decode to their kind and encode to what a person would have written."""

import json
import re
from fractions import Fraction

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from starling.api import ObjectMeta, RolloutPolicy, Source
from starling.api.v1alpha1 import GitRef, GitSource, LabelSelector, Rollout, RolloutStage, RolloutWindow, SourceSpec
from starling.api.v1alpha1.fields import DURATION, Duration, NumberOrPercent, PositiveNumberOrPercent

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


def is_duration(text: str) -> bool:
    """Whether the API server takes it for one, by the expression and the length that it is given."""
    return accepts(Duration, text) and re.search(DURATION, text) is not None


parts = st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h"])).map(lambda each: f"{each[0]}{each[1]}")


@given(st.lists(parts, min_size=1, max_size=4).map("".join), st.sampled_from(["", "-", " ", "d", "1"]))
def test_durations_are_numbers_with_units(duration: str, extra: str) -> None:
    """Numbers with units make a duration; a sign, a space, a day or a bare number spoil it."""
    assert is_duration(duration)
    if extra:
        assert not is_duration(duration + extra)


NANOSECONDS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
numbers = st.builds("{}{}".format, st.integers(0, 10**15), st.sampled_from(["", ".5", ".000000000001"]))


@given(st.lists(st.tuples(numbers, st.sampled_from([*NANOSECONDS])), min_size=1, max_size=5))
@example([("999999", "h"), ("999999", "h"), ("99999", "h")])
@example([("99999999999999", "h")])
def test_durations_fit_go(parts: list[tuple[str, str]]) -> None:
    """A duration that is accepted fits into Go's, which counts nanoseconds in 64 bits."""
    length = sum(Fraction(number) * NANOSECONDS[unit] for number, unit in parts)
    assert length < 2**63 or not is_duration("".join(number + unit for number, unit in parts))


def test_the_longest_duration_is_accepted() -> None:
    """A duration may be long, up to a length of text that no overflow fits into."""
    assert is_duration("999999h999999h99999h")
    assert not is_duration("999999h999999h999999h")
