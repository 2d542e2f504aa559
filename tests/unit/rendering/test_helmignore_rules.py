"""A .helmignore means what Helm takes it for."""

import pytest

from starling.errors import InputError
from starling.rendering.helmignore import parse_rules


@pytest.mark.parametrize(
    ("rules", "path", "folder", "ignored"),
    [
        ("*.txt", "a.txt", False, True),
        ("*.txt", "deep/er/a.txt", False, True),
        ("*.txt", "a.txt.yaml", False, False),
        ("/a.txt", "a.txt", False, True),
        ("/a.txt", "deep/a.txt", False, False),
        ("deep/*.txt", "deep/a.txt", False, True),
        ("deep/*.txt", "deep/er/a.txt", False, False),
        ("docs/", "docs", True, True),
        ("docs/", "docs", False, False),
        ("docs/", "deep/docs", True, True),
        ("a?c", "abc", False, True),
        ("a[b-d]c", "acc", False, True),
        ("a[^b-d]c", "acc", False, False),
        (r"a\*c", "a*c", False, True),
        (r"a\*c", "abc", False, False),
        ("zz*[", "zz[", False, False),
        ("*a*b", "xaxb", False, True),
        ("*a*b", "xaxbx", False, False),
        ("d*/[^x]", "docs/a", False, True),
        ("docs[^x]a", "docs/a", False, False),
        ("# a", "# a", False, False),
        ("  a  ", "a", False, True),
        ("\ufeffa", "a", False, True),
        ("!a", "a", False, False),
        ("!a", "b", False, True),
        ("!a/", "a", False, True),
        ("", "templates/.hidden", False, True),
        ("", "templates/.h", False, True),
        ("", ".hidden", False, False),
        ("", "templates/a.yaml", False, False),
    ],
)
def test_rules(rules: str, path: str, folder: bool, ignored: bool) -> None:
    """One rule, one path; oddities are Helm's (negation leaves out everything else)."""
    assert parse_rules(rules).ignore(path, folder=folder) is ignored


@pytest.mark.parametrize("rule", ["a/**", "[", "[]", "[a", "[a-", "a\\", "[-]", "*["])
def test_what_helm_refuses(rule: str) -> None:
    """A rule that Helm can't read is refused with its text."""
    with pytest.raises(InputError, match=r"^x/\.helmignore: "):
        parse_rules(f"ok\n{rule}\n", "x/.helmignore")
