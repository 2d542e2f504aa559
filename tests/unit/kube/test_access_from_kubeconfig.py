"""A kubeconfig gives access, or an error that names it and the cause; keys never stay on disk."""

import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from starling.kube import ConfigError, default_access, kubeconfig, kubeconfig_data
from starling.local.pki import Pki


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """An authority and a client's certificate."""
    pki = Pki(tmp_path_factory.mktemp("pki"))
    pki.ensure({"admin": ("admin", ["system:masters"])})
    return pki


def config(user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and two contexts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
    }


async def test_token_server_and_namespace() -> None:
    """A token becomes the Authorization header; server and namespace are the context's."""
    access = await kubeconfig_data(config({"token": "s3cret"}))()
    assert (access.server, access.authorization, access.namespace) == ("https://127.0.0.1:1", "Bearer s3cret", "team")
    assert "s3cret" not in repr(access)
    assert (await kubeconfig_data(config({"token": "x"}), context="there")()).namespace == "default"


async def test_files_named_in_a_kubeconfig_are_relative_to_it(pki: Pki, tmp_path: Path) -> None:
    """Certificates by relative path are found beside the kubeconfig."""
    (tmp_path / "sub").mkdir()
    for name, source in {"ca.crt": pki.authority.certificate, "me.crt": pki.pair("admin").certificate,
                         "me.key": pki.pair("admin").key}.items():  # fmt: skip
        (tmp_path / "sub" / name).write_bytes(source.read_bytes())
    data = config({"client-certificate": "me.crt", "client-key": "me.key"}, **{"certificate-authority": "ca.crt"})
    (tmp_path / "sub" / "config").write_text(yaml.safe_dump(data))
    access = await kubeconfig(tmp_path / "sub" / "config")()
    assert access.tls is not None
    assert access.tls.cert_store_stats()["x509_ca"] == 1


async def test_inline_keys_leave_no_file_behind(pki: Pki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded twice, since the loader remembers files it made; nothing stays in the temp folder."""
    import base64  # noqa: PLC0415 - for this one test

    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    pair = pki.pair("admin")
    user = {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(pair.key)}
    source = kubeconfig_data(config(user, **{"certificate-authority-data": inline(pki.authority.certificate)}))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        assert (await source()).tls is not None
        assert list(tmp_path.iterdir()) == []


async def test_an_exec_plugin_gives_the_token(tmp_path: Path) -> None:
    """A credential plugin is run; one that fails is an error, not an anonymous user."""
    plugin = tmp_path / "plugin"
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    plugin.write_text(f"#!{sys.executable}\nprint('{answer}')\n")
    plugin.chmod(stat.S_IRWXU)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config(user)))
    assert (await kubeconfig(path)()).authorization == "Bearer t"
    plugin.write_text("#!/bin/sh\necho not logged in >&2; exit 7\n")
    with pytest.raises(ConfigError, match=r"exec plugin .*plugin' gave no credentials: .*returned 7.*not logged in"):
        await kubeconfig(path)()


async def test_several_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$KUBECONFIG may list files; contexts and users may be in different ones, and missing files are passed over."""
    whole = config({"token": "x"})
    (tmp_path / "one").write_text(yaml.safe_dump({**whole, "users": []}))
    (tmp_path / "two").write_text(yaml.safe_dump({"users": whole["users"]}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/absent:{tmp_path}/one:{tmp_path}/two")
    assert (await default_access()()).authorization == "Bearer x"


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "insecure": (config({}, **{"insecure-skip-tls-verify": True}), "always verifies"),
    "no such context": ({**config({}), "current-context": "elsewhere"}, "elsewhere"),
    "no server": ({**config({}), "clusters": [{"name": "c", "cluster": {}}]}, "isn't a URL|unusable"),
    "a server that is no URL": (config({}, server="10.0.0.1:6443"), "isn't a URL"),
    "an exec plugin": (config({"exec": {"command": "x"}}), "exec isn't allowed here"),
    "a token's path": (config({"tokenFile": "/etc/passwd"}), "tokenFile isn't allowed here"),
    "a CA's path": (config({}, **{"certificate-authority": "ca"}), "certificate-authority isn't allowed here"),
    "a token in clear text": (config({"token": "t"}, server="http://10.0.0.1:80"), "in clear text"),
    "no contexts": ({"current-context": "here"}, "contexts"),
    "a key that is none": (
        config({"client-certificate-data": "eA==", "client-key-data": "eA=="}, server="https://127.0.0.1:1"),
        "unusable",
    ),
}


@pytest.mark.parametrize(("data", "message"), UNUSABLE.values(), ids=UNUSABLE)
async def test_an_unusable_kubeconfig_says_why(data: dict[str, Any], message: str) -> None:
    """The error names where the kubeconfig came from, and the cause."""
    with pytest.raises(ConfigError, match=f"(?s)Secret fleet/eu-1: .*({message})"):
        await kubeconfig_data(data, origin="Secret fleet/eu-1")()


@pytest.mark.parametrize("text", ["{", "- a", "just text", "\x00"], ids=["broken", "list", "text", "binary"])
async def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    """A file that can't be read as one is named."""
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError, match=str(tmp_path / "config")):
        await kubeconfig(tmp_path / "config")()


async def test_no_kubeconfig_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any, the error says where it looked and the ways out."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match=r"no kubeconfig at .*\.kube/config") as caught:
        await default_access()()
    assert "starling local up" in (caught.value.hint or "")
