"""Credentials reach git through private files and are never shown."""

import base64
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from starling.errors import InputError
from starling.sources.git.credentials import ANONYMOUS, Credentials, configuration
from starling.sources.git.url import parse_url

HTTPS = parse_url("https://git.example:8443/team/app.git")
SSH = parse_url("git@git.example:team/app.git")


def read(folder: Path, *arguments: str) -> str:
    """What git makes of a configuration."""
    command = ["git", "config", "--file", str(folder / "config"), *arguments]
    return subprocess.run(command, capture_output=True, check=False, text=True).stdout.strip()


def test_nothing_of_them_is_shown() -> None:
    """Neither by repr nor by str."""
    credentials = Credentials(username="me", password="hunter2", ca="CA")
    assert repr(credentials) == str(credentials) == "Credentials(username=…, password=…, ca=…)"


def test_a_password_stands_in_a_file_for_one_host(tmp_path: Path) -> None:
    """git-credential-store gives it to that host and port alone."""
    text = configuration(HTTPS, Credentials(username="me@x", password="a:b/c'\"\\"), tmp_path)
    assert "a:b" not in text
    (tmp_path / "config").write_text(text)
    assert read(tmp_path, "--get-urlmatch", "credential.helper", "https://other.example/x") == ""
    assert "store" in read(tmp_path, "--get-urlmatch", "credential.helper", HTTPS.text)
    stored = tmp_path / "credentials"
    assert stored.stat().st_mode & 0o777 == 0o600
    fill = ["git", "credential", "fill"]
    environment = {
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    answer = subprocess.run(
        fill, input=b"protocol=https\nhost=git.example:8443\n\n", capture_output=True, check=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", **environment},
    ).stdout.decode().splitlines()  # fmt: skip
    assert "username=me@x" in answer
    assert "password=a:b/c'\"\\" in answer


def test_a_token_is_a_header_for_one_host_and_follows_no_redirection(tmp_path: Path) -> None:
    """It would go along to wherever the server sends us."""
    (tmp_path / "config").write_text(configuration(HTTPS, Credentials(bearer_token='t"\\0'), tmp_path))
    assert read(tmp_path, "--get-urlmatch", "http.extraHeader", HTTPS.text) == 'Authorization: Bearer t"\\0'
    assert read(tmp_path, "--get-urlmatch", "http.followRedirects", HTTPS.text) == "false"
    assert read(tmp_path, "--get-urlmatch", "http.extraHeader", "https://git.example/x") == ""


def test_only_the_addresss_own_protocol_is_allowed(tmp_path: Path) -> None:
    """Whatever a redirection or a submodule says."""
    (tmp_path / "config").write_text(configuration(HTTPS, ANONYMOUS, tmp_path))
    assert read(tmp_path, "protocol.allow") == "never"
    assert read(tmp_path, "protocol.https.allow") == "always"
    assert read(tmp_path, "protocol.ext.allow") == ""


def test_ssh_trusts_the_given_host_keys_only(tmp_path: Path) -> None:
    """No agent, no user configuration, no question."""
    credentials = Credentials(identity="KEY", known_hosts="git.example ssh-ed25519 AAAA")
    (tmp_path / "config").write_text(configuration(SSH, credentials, tmp_path))
    command = read(tmp_path, "core.sshCommand")
    assert command.startswith("ssh -F /dev/null ")
    assert "StrictHostKeyChecking=yes" in command
    assert "GlobalKnownHostsFile=/dev/null" in command
    assert (tmp_path / "identity").read_text() == "KEY\n"
    assert (tmp_path / "identity").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("url", "credentials", "says"),
    [
        (SSH.text, Credentials(identity="KEY"), "known_hosts is missing"),
        (SSH.text, ANONYMOUS, "identity is missing"),
        (HTTPS.text, Credentials(username="me"), "without a password"),
        (HTTPS.text, Credentials(username="me", password="x", bearer_token="y"), "not both"),
        (HTTPS.text, Credentials(username="me", password="x\n"), "line break"),
        (HTTPS.text, Credentials(bearer_token="x\r"), "line break"),
        ("http://git.example/app", Credentials(username="me", password="x"), "plain http"),
        ("http://127.evil.example/app", Credentials(username="me", password="x"), "plain http"),
        ("http://localhost.evil.example/app", Credentials(bearer_token="x"), "plain http"),
    ],
)
def test_credentials_that_can_not_work_are_refused_before_anyone_is_asked(
    url: str, credentials: Credentials, says: str
) -> None:
    """With what is wrong about them."""
    with pytest.raises(InputError, match=says):
        credentials.check(parse_url(url))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:3000", "127.0.0.1:3000", "127.1.2.3", "[::1]", "[::1]:3000"])
def test_this_machine_may_be_told_a_password_over_plain_http(host: str) -> None:
    """Nobody listens on the way."""
    Credentials(username="me", password="x").check(parse_url(f"http://{host}/app"))


@pytest.mark.parametrize("username", ["", "me"])
def test_what_is_sent_is_what_is_kept_out_of_messages(tmp_path: Path, username: str) -> None:
    """The header that git makes of user name and password is as good as the password."""
    credentials = Credentials(username=username, password="hunter2")
    configuration(HTTPS, credentials, tmp_path)
    sent = urlsplit((tmp_path / "credentials").read_text().strip())
    header = base64.b64encode(f"{sent.username}:{sent.password}".encode()).decode()
    assert {"hunter2", header} <= set(credentials.secrets)


@pytest.mark.parametrize("address", ["https://GIT.example:443/app", "https://git.example/app", "http://LOCALHOST:80/x"])
def test_git_finds_a_password_for_any_spelling_of_the_host(tmp_path: Path, address: str) -> None:
    """By the address in its normal form."""
    url = parse_url(address)
    (tmp_path / "config").write_text(configuration(url, Credentials(username="me", password="x"), tmp_path))
    assert read(tmp_path, "remote.origin.url") == url.normal
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    fill = subprocess.run(
        ["git", "credential", "fill"], input=f"url={url.normal}\n\n", capture_output=True, check=False, text=True,
        env=environment,
    )  # fmt: skip
    assert "password=x" in fill.stdout.splitlines(), fill.stderr


@pytest.mark.parametrize(("address", "safe"), [(HTTPS.text, ""), (SSH.text, ""), ("file:///srv/app.git", "*")])
def test_only_repositories_on_this_machine_may_belong_to_others(tmp_path: Path, address: str, safe: str) -> None:
    """Git reads no one else's configuration, but for the repository that it is told to read."""
    (tmp_path / "config").write_text(configuration(parse_url(address), ANONYMOUS, tmp_path))
    assert read(tmp_path, "safe.directory") == safe


def test_a_secret_of_the_cluster_gives_them() -> None:
    """By the keys that the Source's documentation names."""
    data = {"username": b"me", "password": b"x", "bearerToken": b"t", "identity": b"i", "known_hosts": b"k"}
    data |= {"ca.crt": b"c", "other": b"\xff"}
    assert Credentials.from_secret(data) == Credentials("me", "x", "t", "i", "k", "c")
    with pytest.raises(InputError):
        Credentials.from_secret({"password": b"\xff"})
