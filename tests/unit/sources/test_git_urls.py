"""Which addresses of git repositories are taken, and which are one repository."""

import re
import traceback

import pytest

from starling.errors import InputError
from starling.sources.git.url import parse_url


@pytest.mark.parametrize(
    ("text", "repository"),
    [
        ("https://git.example/team/app.git", "https://git.example/team/app.git"),
        ("https://GIT.example:443/team/app.git/", "https://git.example/team/app.git"),
        ("https://git.example:8443/app", "https://git.example:8443/app"),
        ("http://127.0.0.1:3000/app", "http://127.0.0.1:3000/app"),
        ("https://[::1]:8443/app", "https://[::1]:8443/app"),
        ("ssh://git@git.example:22/team/app.git", "ssh://git@git.example/team/app.git"),
        ("ssh://git.example/app", "ssh://git.example/app"),
        ("git@GIT.example:team/app.git/", "git@git.example:team/app.git"),
        ("git@git.example:~me/app.git", "ssh://git@git.example/~me/app.git"),
        ("git@git.example:~/app.git", "ssh://git@git.example/~/app.git"),
        ("git@git.example:/srv/app.git", "ssh://git@git.example/srv/app.git"),
        ("file:///srv/app.git", "file:///srv/app.git"),
    ],
)
def test_spellings_of_one_address_are_one_repository(text: str, repository: str) -> None:
    """Case of the host, the scheme's own port and a last slash make no difference."""
    assert parse_url(text).repository == repository
    assert parse_url(text).text == text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("https://GIT.example:443/Team/app.git/", "https://git.example/Team/app.git/"),
        ("http://LOCALHOST:3000/app", "http://localhost:3000/app"),
        ("https://[FE80::1]:443/app", "https://[fe80::1]/app"),
        ("ssh://Git@GIT.example:22/~/app", "ssh://Git@git.example/~/app"),
        ("git@GIT.example:Team/app.git", "git@git.example:Team/app.git"),
        ("file:///srv/App.git", "file:///srv/App.git"),
    ],
)
def test_git_is_given_one_spelling_of_a_host(text: str, normal: str) -> None:
    """The path stays as it is: it is the server's, which may not know that two are one."""
    assert parse_url(text).normal == normal
    assert parse_url(normal).normal == normal


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::sh",
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=x",
        "fd::17",
        "git://git.example/app",
        "ftp://git.example/app",
        "/srv/app.git",
        "../app",
        "app",
        "",
        "https://",
        "https://git.example",
        "https://git.example/",
        "https://-oProxyCommand=x/app",
        "ssh://-oProxyCommand=x/app",
        "ssh://git@-x/app",
        "git@-oProxyCommand=x:app",
        "-x@git.example:app",
        "git@git.example:-x",
        "git@git.example:/",
        "https://git.example/a b",
        "https://git.example/a\nb",
        "https://git.example:port/app",
        "https://git.example/app?ref=main",
        "https://git.example/app#main",
        "file://host/app",
        "file://app",
        "file:///",
        "HTTPS://git.example/app",
        "https::https://git.example/app",
    ],
)
def test_what_git_would_run_or_we_do_not_know_is_refused(text: str) -> None:
    """Programs, options, paths, and addresses without a repository."""
    with pytest.raises(InputError):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    ["https://me:hunter2@git.example/app", "https://hunter2@git.example/app", "ssh://git:hunter2@git.example/app"],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    """It would be in every log."""
    with pytest.raises(InputError, match="belong in the credentials") as caught:
        parse_url(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://bob:hunter2/x@git.example/app",
        "https://bob:hunter2 x@git.example/app",
        "HTTPS://bob:hunter2@git.example/app",
        "git+https://bob:hunter2@git.example/app",
        "https://bob:hunter2[@git.example/app",
        "https://bob:hunter2@git_example/app",
        "https://bob:hunter2%40git.example/app",
        "https://bob:hunter2/app",
        "ssh://git:x@hunter2@git.example/app",
        "bob:hunter2@git.example:app",
        "file://bob:hunter2@git.example/app",
    ],
)
def test_what_may_be_a_password_is_not_repeated(text: str) -> None:
    """Nor by what led to the error, which a log would show as well."""
    with pytest.raises(InputError) as caught:
        parse_url(text)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("text", ["git@-x:app", "ssh://git@git.example", "ssh://git@-x/app", "HTTPS://git.example/app"])
def test_what_can_be_no_password_is_repeated(text: str) -> None:
    """So that one sees which address is meant."""
    with pytest.raises(InputError, match=re.escape(repr(text))):
        parse_url(text)


@pytest.mark.parametrize(
    ("of", "relative", "means"),
    [
        ("https://git.example/team/app.git", "../lib.git", "https://git.example/team/lib.git"),
        ("https://git.example:8443/team/app.git/", "../../other/lib", "https://git.example:8443/other/lib"),
        ("ssh://git@git.example:2222/team/app", "./sub", "ssh://git@git.example:2222/team/app/sub"),
        ("git@git.example:team/app", "../lib", "git@git.example:team/lib"),
        ("git@git.example:team/app", "../../other/lib", "git@git.example:other/lib"),
        ("git@git.example:/srv/app", "../lib", "ssh://git@git.example/srv/lib"),
        ("file:///srv/app.git", "../lib.git", "file:///srv/lib.git"),
    ],
)
def test_a_relative_submodule_is_beside_its_repository(of: str, relative: str, means: str) -> None:
    """As git reads it."""
    assert parse_url(of).joined(relative).text == means


@pytest.mark.parametrize("of", ["https://git.example/app", "git@git.example:app", "file:///srv"])
@pytest.mark.parametrize("relative", ["../", "../../../../"])
def test_a_relative_submodule_does_not_lead_above_the_host(of: str, relative: str) -> None:
    """There is nothing above."""
    with pytest.raises(InputError, match="leads out of"):
        parse_url(of).joined(relative)
