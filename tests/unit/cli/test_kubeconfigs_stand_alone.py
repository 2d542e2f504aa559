"""A kubeconfig that goes elsewhere takes its files along, and can't take its programs."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from starling.cli.kubeconfigs import find
from starling.errors import InputError
from starling.kube import kubeconfig_data


def write(folder: Path, cluster: dict[str, Any], user: dict[str, Any], name: str = "config") -> Path:
    """A kubeconfig with one context."""
    file = folder / name
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(json.dumps(config))
    return file


async def test_files_are_taken_in(tmp_path: Path) -> None:
    """Certificates, keys and tokens come in, found from the kubeconfig's folder; what comes out reaches for nothing."""
    for name in ("ca.crt", "me.crt", "me.key", "token"):
        (tmp_path / name).write_text(f"content of {name}\n")
    file = write(
        tmp_path,
        {"server": "http://127.0.0.1:1", "certificate-authority": "ca.crt"},
        {"client-certificate": str(tmp_path / "me.crt"), "client-key": "me.key", "tokenFile": "token"},
    )
    made = find(file).standalone()
    inside = {
        name: base64.b64encode(f"content of {name}\n".encode()).decode() for name in ("ca.crt", "me.crt", "me.key")
    }
    assert made["clusters"][0]["cluster"] == {
        "server": "http://127.0.0.1:1",
        "certificate-authority-data": inside["ca.crt"],
    }
    assert made["users"][0]["user"] == {
        "client-certificate-data": inside["me.crt"],
        "client-key-data": inside["me.key"],
        "token": "content of token",
    }
    simple = find(write(tmp_path, {"server": "http://127.0.0.1:1"}, {"token": "t"}, "simple")).standalone()
    assert (await kubeconfig_data(simple)()).server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        ({}, {"exec": {"command": "login"}}, "its user needs 'exec'"),
        ({}, {"auth-provider": {"name": "cloud"}}, "its user needs 'auth-provider'"),
        ({}, {"token": "secret", "as": "root"}, "its user needs 'as'"),
        ({"insecure-skip-tls-verify": True}, {}, "insecure-skip-tls-verify is set"),
        ({"server": ""}, {}, "at which server"),
        ({"certificate-authority": "nowhere"}, {}, "nowhere: No such file"),
    ],
    ids=["exec", "auth-provider", "impersonation", "insecure", "no server", "no file"],
)
def test_what_works_on_this_machine_alone_is_refused(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], told: str
) -> None:
    """Each with the file and what is wrong with it, and never what is secret in it."""
    file = write(tmp_path, {"server": "https://a:1", **cluster}, user)
    with pytest.raises(InputError, match=told) as caught:
        find(file).standalone()
    assert str(file) in caught.value.message
    assert "secret" not in caught.value.message


def test_only_the_context_that_is_meant_comes_along(tmp_path: Path) -> None:
    """Others stay here; one that isn't there is refused, with those that are."""
    file = write(tmp_path, {"server": "https://a:1"}, {"token": "t"})
    config = json.loads(file.read_text())
    config["contexts"].append({"name": "other", "context": {"cluster": "d", "user": "v"}})
    config["clusters"].append({"name": "d", "cluster": {"server": "https://b:1"}})
    config["users"].append({"name": "v", "user": {"token": "theirs"}})
    file.write_text(json.dumps(config))
    made = find(file, "other").standalone()
    assert made["clusters"][0]["cluster"]["server"] == "https://b:1"
    assert "https://a:1" not in json.dumps(made)
    with pytest.raises(InputError, match="has no context third") as caught:
        find(file, "third")
    assert caught.value.hint == "it has: it, other"


def test_a_kubeconfig_must_be_there(tmp_path: Path) -> None:
    """Neither nothing nor something else will do."""
    with pytest.raises(InputError, match="no kubeconfig at"):
        find(tmp_path / "nowhere")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(InputError, match="is no kubeconfig"):
        find(tmp_path / "list")
