"""Variables in objects: typed as YAML reads them, each within its field, errors that say where and tell no value."""

import traceback

import pytest

from starling.objects import Manifest, ManifestError, Origin, load_manifests
from starling.rendering.errors import SubstitutionError, VariableNotSet
from starling.rendering.substitution import substitute


def one(text: str, variables: dict[str, str], *, strict: bool = False) -> Manifest:
    """The one object of a text, with variables put in."""
    [manifest] = substitute(load_manifests(text, "app.yaml"), variables, strict=strict)
    return manifest


def thing(spec: str, metadata: str = "") -> str:
    """An object with this spec, as YAML."""
    return f"apiVersion: v1\nkind: Thing\nmetadata: {{name: x, namespace: shop{metadata}}}\nspec: {spec}\n"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("3", 3),
        ("1.5", 1.5),
        ("yes", True),
        ("off", False),
        ("null", None),
        ("", None),
        ("0x10", 16),
        ('"3"', "3"),
        ("'yes'", "yes"),
        ("v1", "v1"),
        ("12:30", "12:30"),
        ("{a: [1, b]}", {"a": [1, "b"]}),
        ("a # comment", "a"),
        ("two\nlines", "twolines"),
        ("a\n---\nb", "a---b"),
        (r"\d+", r"\d+"),
    ],
)
def test_values_become_what_yaml_reads(value: str, read: object) -> None:
    """A text that is all expression becomes a number, a boolean or whatever the value is in YAML, quoted or not."""
    assert one(thing("{f: '${V}'}"), {"V": value}).content["spec"] == {"f": read}
    assert one(thing("['${V}']"), {"V": value}).content["spec"] == [read]


def test_quotes_of_its_own_keep_a_value_text() -> None:
    """What Flux users do where a number must stay text: quotes in a variable."""
    manifest = one(thing("{f: '${q}${N}${q}'}"), {"q": '"', "N": "3"})
    assert manifest.content["spec"] == {"f": "3"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("port ${N}", "port 3"),
        ("a: ${N}", "a: 3"),
        ("# ${N}", "# 3"),
        (" ${N}", " 3"),
        ("line\n${N}\n", "line\n3\n"),
        (" line\n  ${N}\n\n", " line\n  3\n\n"),
        ("tab\t${N}", "tab\t3"),
        ("\u00e9 \U0001f600 ${N}", "\u00e9 \U0001f600 3"),
        ("$${N} and $N", "${N} and $N"),
        ("{${N}}", "{3}"),
    ],
)
def test_text_around_an_expression_stays(text: str, read: str) -> None:
    """Whatever quotes the rest of a text needs, it stays text."""
    manifest = Manifest({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"f": text}})
    assert substitute([manifest], {"N": "3"})[0].content["spec"] == {"f": read}


def test_a_value_is_read_where_it_stands() -> None:
    """A pair is a mapping as an item of a list, and makes no sense behind a key; in lines of text it is text."""
    assert one(thing("['${V}']"), {"V": "a: b"}).content["spec"] == [{"a": "b"}]
    assert one(thing("|\n  x\n  ${V}"), {"V": "a: 'b\\"}).content["spec"] == "x\na: 'b\\\n"
    with pytest.raises(SubstitutionError, match="mapping values are not allowed"):
        one(thing("'${V}'"), {"V": "a: b"})


def test_keys_and_names_and_kinds() -> None:
    """Expressions work in keys and in what an object is called; it stays where it was written."""
    manifest = one(
        "apiVersion: v1\nkind: ${K}\nmetadata: {name: 'a-${N}'}\ndata: {'${K}-${N}': x}\n", {"K": "Fun", "N": "1"}
    )
    assert str(manifest.key) == "Fun a-1"
    assert manifest.content["data"] == {"Fun-1": "x"}
    assert manifest.origin == Origin("app.yaml", 1, 1)


def test_what_has_no_expression_is_the_same_object() -> None:
    """Manifests without expressions are passed on, and what is in others without one isn't copied."""
    plain, bare, other = load_manifests(
        "\n---\n".join(
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\nmore: {{deep: [1, yes, 0x10]}}"
            for name, data in [("a", "{}"), ("b", "{cost: $5, s: $(x) $HOME}"), ("c", "{v: '${V}'}")]
        )
    )
    result = substitute([plain, bare, other], {"V": "x"}, strict=True)
    assert result[0] is plain
    assert result[1] is bare
    assert result[2].content["data"] == {"v": "x"}
    assert result[2].content["more"] is other.content["more"]
    assert other.content["data"] == {"v": "${V}"}


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("key", ["kustomize.toolkit.fluxcd.io/substitute", "starling.dev/substitute"])
def test_objects_can_opt_out(field: str, key: str) -> None:
    """`disabled`, and only that, leaves an object as it is, bad expressions and all."""
    [manifest] = load_manifests(thing("{f: '${V} ${'}", f", {field}: {{{key}: disabled}}"))
    assert substitute([manifest], {"V": "x"}, strict=True)[0] is manifest
    with pytest.raises(SubstitutionError):
        one(thing("{f: '${V} ${'}", f", {field}: {{{key}: Disabled}}"), {"V": "x"})


def test_without_variables_nothing_is_touched() -> None:
    """As in Flux, scripts keep their ${HOME} until someone gives variables; strict still asks for them."""
    manifests = load_manifests(thing("{f: '${HOME:-x}', g: '${HOME}'}"))
    assert substitute(manifests, {})[0] is manifests[0]
    with pytest.raises(VariableNotSet):
        substitute(manifests, {}, strict=True)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A.B", "A B", "\u00c4", "A\n"])
def test_names_of_variables_are_checked(name: str) -> None:
    """A name that no expression could mention is refused, whether or not anything is to be put in."""
    with pytest.raises(SubstitutionError, match="can't be a variable's name"):
        substitute([], {name: "x"})


def test_strict_names_variable_object_and_place() -> None:
    """A missing value is reported with its field, its object, its file."""
    with pytest.raises(VariableNotSet) as caught:
        one(thing("{a: [{b.c: 'x ${GONE}'}]}"), {"V": "x"}, strict=True)
    assert str(caught.value) == "app.yaml:1 (document 1): spec.a[0]['b.c'] of Thing shop/x: GONE is not set"
    assert "${GONE:-default}" in str(caught.value.hint)


def test_a_bad_expression_names_field_object_and_line() -> None:
    """The line counts within the field's text, as its author sees it."""
    with pytest.raises(SubstitutionError) as caught:
        one("apiVersion: v1\nkind: Thing\nmetadata: {name: x}\ndata:\n  s: |\n    a\n    b ${V-x}\n", {"V": "x"})
    assert str(caught.value).startswith("app.yaml:1 (document 1): data.s of Thing x: line 2: ")
    assert "kustomize.toolkit.fluxcd.io/substitute: disabled" in str(caught.value.hint)


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("{f: '${V}'}", f"{SECRET}: {SECRET}: x"),
        ("{f: '${V}'}", f'"{SECRET}'),
        ("{f: '${V}'}", f"'{SECRET}"),
        ("{f: '${V}'}", f"[{SECRET}"),
        ("{f: '${V}'}", f"*{SECRET}"),
        ("{f: '${V}'}", f"{{{SECRET}: 1, {SECRET}: 2}}"),
        ("{f: '${V}'}", f"!{SECRET}! x"),
        ("{f: '${V}'}", f"x\rk2: {SECRET}"),
        ("{f: '${V}'}", f"x\r---\rkind: {SECRET}"),
        ("{f: '${V}'}", f"x\r...\r{SECRET}"),
        ("{f: '${V}'}", f"x\u2028---\u2028{SECRET}"),
        ("{f: '${V}'}", f"{SECRET}\0"),
        ("['${V}']", f"x\r- {SECRET}"),
        ("{'${V}': 1}", f"{SECRET}: 1"),
        ("{'${V}': 1}", f"? {SECRET}"),
        ("{'${V}': 1}", f"- {SECRET}"),
        ("{'${V}': 1}", f"# {SECRET}"),
        ("{'${V}': 1}", f"{SECRET}: 1 #"),
        ("{'${V}': 1}", f"x\r  {SECRET}"),
        ("{'${V}': 1}", f"{{{SECRET}: 1}}"),
        ("{'a: ${V}': 1}", f"{SECRET}'"),
        (f"{{'${{V}}': 1, {SECRET}: 2}}", SECRET),
    ],
)
def test_values_that_break_out_are_refused_and_not_told(spec: str, value: str) -> None:
    """What isn't one value in its field is an error that names field, variable and object, and no value."""
    with pytest.raises(SubstitutionError) as caught:
        one(thing(spec), {"V": value, "OTHER": "x"})
    message = str(caught.value)
    assert message.startswith("app.yaml:1 (document 1): spec")
    assert "of Thing shop/x" in message
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("text", "value", "place"),
    [
        ("{name: '${V}'}", "1234567", "metadata.name"),
        ("{name: '${V}'}", "", "metadata.name"),
        ("{name: x, namespace: '${V}'}", "1234567", "metadata.namespace"),
        ("{name: x, labels: {a: '${V}'}}", "1234567", "metadata.labels.a"),
        ("{name: x, labels: {a/b: '${V}'}}", "true", "metadata.labels['a/b']"),
        ("{name: x, labels: {'${V}': '${V}'}}", "1234567", "metadata.labels"),
    ],
)
def test_what_an_object_is_called_by_must_stay_text(text: str, value: str, place: str) -> None:
    """A number in a label or a name is refused here, with the field and the remedy but not the value."""
    with pytest.raises(SubstitutionError) as caught:
        one(f"apiVersion: v1\nkind: Thing\nmetadata: {text}\n", {"V": value})
    assert f"(document 1): {place} of Thing " in str(caught.value)
    assert "1234567" not in str(caught.value)
    assert "quotes" in str(caught.value.hint)


def test_identities_may_become_the_same() -> None:
    """That two objects are one is the caller's to refuse, who has them all."""
    text = "\n---\n".join(thing("1").replace("name: x", f"name: '{name}'") for name in ("a", "${V}"))
    first, second = substitute(load_manifests(text), {"V": "a"})
    assert first.key == second.key


def test_what_a_whole_object_comes_to_is_bounded() -> None:
    """Many fields, each small enough, don't make a bomb either."""
    fields = ", ".join(f"f{number}: '${{V}}'" for number in range(100))
    with pytest.raises(SubstitutionError, match=r"spec\.f\d+ of Thing shop/x: .* longer than"):
        one(thing(f"{{{fields}}}"), {"V": "x" * 100_000})


def test_values_are_text() -> None:
    """A value that came from bytes that are no text is refused by its variable's name."""
    with pytest.raises(SubstitutionError, match="the value of V is not UTF-8"):
        one(thing("{f: '${#V}'}"), {"V": "\udcff"})


def test_errors_of_substitution_are_no_errors_of_files() -> None:
    """Whoever catches what is wrong with files doesn't catch what is wrong with one cluster's values."""
    assert not issubclass(SubstitutionError, ManifestError)
