"""Values that stand in ConfigMaps and Secrets are found as Flux finds them."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from starling.rendering import RenderError, ValuesFrom, ValuesMissing, resolve

SECRET = "hunter2"


class Objects:
    """Objects by kind and name, which count how often they were asked for."""

    def __init__(self, **data: Mapping[str, str]) -> None:
        self.data = data
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """The object's data; names of Secrets start with s."""
        self.asked.append((kind, name))
        found = self.data.get(name) if (kind == "Secret") == name.startswith("s") else None
        return None if found is None else {key: text.encode() for key, text in found.items()}


async def one(text: str, path: str, before: str = "{}") -> Any:
    """The values after a target path was set."""
    objects = Objects(c={"values.yaml": before}, s={"k": text})
    references = [ValuesFrom("ConfigMap", "c"), ValuesFrom("Secret", "s", key="k", target_path=path)]
    (found,) = await resolve(references, objects)
    return found


async def test_order_and_keys() -> None:
    """Values come in the order of the references, an object is asked for once, and an empty text is no value."""
    objects = Objects(
        c={"values.yaml": "a: 1", "other": "a: 2\nb: [1]"}, s={"values.yaml": "c: x"}, cd={"values.yaml": ""}
    )
    found = await resolve(
        [
            ValuesFrom("ConfigMap", "c"),
            ValuesFrom("Secret", "s"),
            ValuesFrom("ConfigMap", "c", key="other"),
            ValuesFrom("ConfigMap", "cd"),
        ],
        objects,
    )
    assert found == [{"a": 1}, {"c": "x"}, {"a": 2, "b": [1]}, {}]
    assert objects.asked == [("ConfigMap", "c"), ("Secret", "s"), ("ConfigMap", "cd")]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (ValuesFrom("ConfigMap", "none"), r"^values from ConfigMap/none, key values\.yaml: there is no such object$"),
        (ValuesFrom("Secret", "c"), r"^values from Secret/c, key values\.yaml: there is no such object$"),
        (ValuesFrom("ConfigMap", "c", key="k"), r"^values from ConfigMap/c, key k: the object has no such key$"),
        (ValuesFrom("ConfigMap", "c", key="k", target_path="a"), r"^values from ConfigMap/c, key k: the object has no"),
    ],
)
async def test_what_is_missing(reference: ValuesFrom, problem: str) -> None:
    """A missing object or key is named; one that is optional is passed over."""
    objects = Objects(c={"values.yaml": "a: 1"})
    with pytest.raises(ValuesMissing, match=problem):
        await resolve([reference], objects)
    optional = ValuesFrom(reference.kind, reference.name, reference.key, True, reference.target_path)
    assert await resolve([optional, ValuesFrom("ConfigMap", "c")], objects) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"a: 1\n{SECRET}: [", "can't be read as YAML"),
        (f"{SECRET}: 1\n{SECRET}: 2", "can't be read as YAML"),
        (SECRET, "it is no mapping"),
        (f"- {SECRET}", "it is no mapping"),
        (f"a: {SECRET}\n---\nb: 1", "more than one YAML document"),
    ],
)
async def test_no_error_says_a_value(text: str, problem: str) -> None:
    """What can't be read is named by object and key, even if it is optional; nothing of it is in error or cause."""
    with pytest.raises(RenderError, match=rf"^values from Secret/s, key values\.yaml: .*{problem}") as raised:
        await resolve([ValuesFrom("Secret", "s", optional=True)], Objects(s={"values.yaml": text}))
    error: BaseException | None = raised.value
    assert SECRET not in f"{raised.value} {raised.value.hint}"
    assert error is not None
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_other_kinds() -> None:
    """Nothing else holds values."""
    with pytest.raises(RenderError, match="values can't come from Pod/x"):
        ValuesFrom(cast("Any", "Pod"), "x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (SECRET, SECRET),
        ("", ""),
        ("true", True),
        ("False", False),
        ("null", None),
        ("0", 0),
        ("-12", -12),
        ("007", "007"),
        ("1.5", "1.5"),
        ("9223372036854775808", "9223372036854775808"),
        ("9" * 5000, "9" * 5000),
        ("'12'", "12"),
        ('"true"', "true"),
        ("{a,1,true}", ["a", 1, True]),
        ("'{a,1}'", ["a", "1"]),
        ("{}", [""]),
        (r"a\,b=c", "a,b=c"),
        (r"\{a", "{a"),
        ("a=b\n", "a=b\n"),
    ],
)
async def test_one_value(text: str, value: Any) -> None:
    """A value at a path is what `helm --set` makes of it."""
    assert await one(text, "a.b") == {"a": {"b": value}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("x", {"a": {"b": 1}, "l": [{"c": 1}, 2], "x": "v"}),
        ("a.b", {"a": {"b": "v"}, "l": [{"c": 1}, 2]}),
        ("a.c.d", {"a": {"b": 1, "c": {"d": "v"}}, "l": [{"c": 1}, 2]}),
        (r"a\.b", {"a": {"b": 1}, "l": [{"c": 1}, 2], "a.b": "v"}),
        ("l[0].d", {"a": {"b": 1}, "l": [{"c": 1, "d": "v"}, 2]}),
        ("l[1].d", {"a": {"b": 1}, "l": [{"c": 1}, {"d": "v"}]}),
        ("l[3]", {"a": {"b": 1}, "l": [{"c": 1}, 2, None, "v"]}),
        ("n[0][1]", {"a": {"b": 1}, "l": [{"c": 1}, 2], "n": [[None, "v"]]}),
    ],
)
async def test_paths(path: str, found: Any) -> None:
    """A path leads through mappings and lists that are there, and makes those that aren't."""
    assert await one("v", path, "a: {b: 1}\nl: [{c: 1}, 2]") == found


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        (f"a,b={SECRET}", "x", "more than one value to helm --set"),
        (f"{{{SECRET}", "x", "a list that doesn't end"),
        (f"{{a}}{SECRET}", "x", "a list that doesn't end"),
        (f"{{a}},{{{SECRET}}}", "x", "a list that doesn't end"),
        (SECRET, "a.b.c", r"a\.b of the target path a\.b\.c is no mapping"),
        (SECRET, "a[0]", r"a of the target path a\[0\] is no list"),
        (SECRET, "a[", r"the target path a\[ is no path"),
        (SECRET, "a..b", "is no path"),
        (SECRET, "a.", "is no path"),
        (SECRET, ".a", "is no path"),
        (SECRET, "a=1,b", "is no path"),
        (SECRET, "x[65537]", "has an index beyond 65536"),
        (SECRET, ".".join("x" * 31), "more than 30 deep"),
    ],
)
async def test_what_cannot_be_set(text: str, path: str, problem: str) -> None:
    """Each says why, with object and key, and without the value."""
    with pytest.raises(RenderError, match=rf"^values from Secret/s, key k: .*{problem}") as raised:
        await one(text, path, "a: {b: 1}")
    assert SECRET not in f"{raised.value} {raised.value.hint}"


async def test_what_was_looked_up_stays_as_it_is() -> None:
    """Later values win over a target path before them, and what the same object gives again is unchanged."""
    objects = Objects(c={"values.yaml": "a: {b: [1]}", "k": "v"}, s={"values.yaml": "a: {b: 2}"})
    config = ValuesFrom("ConfigMap", "c")
    setting = ValuesFrom("ConfigMap", "c", key="k", target_path="a.b[0]")
    found = await resolve([config, setting, config, ValuesFrom("Secret", "s")], objects)
    assert found == [{"a": {"b": ["v"]}}, {"a": {"b": [1]}}, {"a": {"b": 2}}]
