"""Our reading of patterns against git's own, over generated patterns and paths."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from starling.sources.ignore import CLASSES, Ignore
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds


class Git:
    """`git check-ignore` in a repository of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "--quiet", folder], check=True, env=self.environment)

    def ignored(self, patterns: list[str], paths: list[str]) -> list[str]:
        """Those of the paths that git leaves out."""
        lines = "".join(f"{pattern}\n" for pattern in patterns)
        (self.folder / ".git/info/exclude").write_bytes(lines.encode("utf-8", "surrogateescape"))
        told = subprocess.run(
            ["git", "check-ignore", "--no-index", "--stdin", "-z", "--verbose", "--non-matching"],
            cwd=self.folder,
            env=self.environment,
            input="".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
        )
        assert told.returncode in (0, 1), told.stderr
        fields = told.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        found = zip(fields[2::4], fields[3::4], strict=True)
        return [path for pattern, path in found if pattern and not pattern.startswith("!")]


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    """One repository for all questions."""
    return Git(tmp_path_factory.mktemp("ignore"))


NAME = st.text(alphabet="ab.c!#-^ \\[]*?é\t0Z~", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
PATH = st.lists(NAME | st.sampled_from(["a", "b", "ab", "a.b"]), min_size=1, max_size=4).map("/".join)
PIECE = st.sampled_from(
    ["a", "b", "c", ".", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "?", "!", "#", "\\", " ", "\t", "é", "-", "ab"]
) | st.sampled_from(
    [
        r"\ ",
        r"\*",
        r"\/",
        "[ab]",
        "[!a]",
        "[^a]",
        "[a-c]",
        "[]a]",
        "[",
        "]",
        "[a-",
        "[b-a]",
        "[!b-a]",
        r"[\]]",
        "[[:alpha:]]",
        "[![:space:]]",
        "[[:punct:]]",
        "[[:x:]]",
        "[a[:digit:]-z]",
        "[[:]",
        "[--0]",
        "[a-a-c]",
        "[/a]",
        "[[:upper:]0]",
        "[[:cntrl:]]",
        "[[:print:]]",
        "[[:graph:][:blank:]]",
        "[[:xdigit:]]",
        r"[\a-\c]",
    ]
)
PATTERN = st.builds(
    lambda start, pieces, end: start + "".join(pieces) + end,
    st.sampled_from(["", "", "", "!", "/", "!/", "**/"]),
    st.lists(PIECE, max_size=6),
    st.sampled_from(["", "", "", "/", "/**", "/*", " "]),
)


def settled(pattern: str) -> bool:
    """Tell whether git's versions agree on it: up to 2.51, `ab**/c` was read as `ab`, then `**/c`, against its manual.

    Older ones cut off what comes before the first wildcard and took what was left for a pattern's start.
    """
    text = pattern.rstrip(" ").removeprefix("!").removeprefix("/")
    literal = len(text) - len(text.lstrip("".join(set(text) - set("*?[\\"))))
    return not (literal and text[literal - 1] != "/" and text[literal:].startswith("**"))


@settings(max_examples=400 * ROUNDS)
@given(patterns=st.lists(PATTERN, min_size=1, max_size=4), paths=st.lists(PATH, min_size=1, max_size=60, unique=True))
@example(patterns=["**/a*b"], paths=["ax/ab", "axb"])
@example(patterns=["a/**/b/*c/**/d"], paths=["a/b/c/d", "a/x/b/b/xc/y/d"])
@example(patterns=["*", "!a/", "!b"], paths=["a/b", "b", "c/b"])
@example(patterns=["a**b/c", "x/**y"], paths=["ab/c", "axb/c", "a/b/c", "x/zy", "x/z/y"])
def test_what_git_ignores(git: Git, patterns: list[str], paths: list[str]) -> None:
    """The same paths are left out, whatever the patterns, their order and what they take back."""
    assume(all(settled(pattern) for pattern in patterns))
    rules = Ignore(patterns)
    assert [path for path in paths if rules.ignores(path)] == git.ignored(patterns, paths)


@pytest.mark.parametrize("negated", ["", "!"])
@pytest.mark.parametrize("name", [*(name.decode() for name in CLASSES), "word"])
def test_classes_of_bytes(git: Git, name: str, negated: str) -> None:
    """A named class holds the same of all bytes; one that isn't known, none."""
    pattern = f"x[{negated}[:{name}:]]"
    paths = ["x" + bytes([byte]).decode("utf-8", "surrogateescape") for byte in range(1, 256) if byte != ord("/")]
    rules = Ignore([pattern])
    assert [path for path in paths if rules.ignores(path)] == git.ignored([pattern], paths)
