"""Which addresses of git repositories are taken, and which are one repository."""

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
        ("git@git.example:team/app.git", "ssh://git@git.example/~/team/app.git"),
        ("git@git.example:/srv/app.git", "ssh://git@git.example/srv/app.git"),
        ("file:///srv/app.git", "file:///srv/app.git"),
    ],
)
def test_spellings_of_one_address_are_one_repository(text: str, repository: str) -> None:
    """Case of the host, the scheme's own port and a last slash make no difference."""
    assert parse_url(text).repository == repository
    assert parse_url(text).text == text


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
    ("of", "relative", "means"),
    [
        ("https://git.example/team/app.git", "../lib.git", "https://git.example/team/lib.git"),
        ("https://git.example:8443/team/app.git/", "../../other/lib", "https://git.example:8443/other/lib"),
        ("ssh://git@git.example:2222/team/app", "./sub", "ssh://git@git.example:2222/team/app/sub"),
        ("git@git.example:team/app", "../lib", "ssh://git@git.example/~/team/lib"),
        ("file:///srv/app.git", "../lib.git", "file:///srv/lib.git"),
    ],
)
def test_a_relative_submodule_is_beside_its_repository(of: str, relative: str, means: str) -> None:
    """As git reads it."""
    assert parse_url(of).joined(relative).text == means


def test_a_relative_submodule_does_not_lead_above_the_host() -> None:
    """There is nothing above."""
    with pytest.raises(InputError, match="leads out of"):
        parse_url("https://git.example/app").joined("../../../../")
