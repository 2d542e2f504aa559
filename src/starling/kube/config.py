"""Where a cluster is and how to prove who we are, loaded by the official client's config loader.

A *source of access* is an asynchronous function that gives an Access. It is asked again when the API server no longer
accepts what it gave (a rotated token, an expired exec credential) and, for in-cluster accounts, every minute.
"""

import logging
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yarl import URL

from starling.kube.errors import ConfigError

__all__ = ["Access", "AccessSource", "default_access", "in_cluster", "kubeconfig", "kubeconfig_data"]

IN_CLUSTER_TOKEN_LIFE = 60.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
REACHING_OUT = frozenset(
    {"certificate-authority", "client-certificate", "client-key", "tokenFile", "exec", "auth-provider"}
)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """One cluster's address and our credentials for it."""

    server: str
    tls: ssl.SSLContext | None
    authorization: str | None = None
    namespace: str = "default"
    tls_server_name: str | None = None
    proxy: str | None = None
    lives_for: float | None = None

    def __repr__(self) -> str:
        return f"Access(server={self.server!r})"


AccessSource = Callable[[], Awaitable[Access]]


def default_access(path: Path | None = None, context: str | None = None) -> AccessSource:
    """What kubectl would use: the given file, $KUBECONFIG, ~/.kube/config, else the pod's own account."""
    if path is not None or context is not None or os.environ.get("KUBECONFIG"):
        return kubeconfig(path, context)
    if (Path.home() / ".kube" / "config").exists() or "KUBERNETES_SERVICE_HOST" not in os.environ:
        return kubeconfig(path, context)
    return in_cluster()


def kubeconfig(path: Path | None = None, context: str | None = None) -> AccessSource:
    """Access from a kubeconfig file, read anew each time it is asked for."""

    async def load() -> Access:
        from kubernetes.aio.config import kube_config  # noqa: PLC0415 - half a second that --help shouldn't wait for

        places = str(path or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
        merged = _merge(kube_config, places)
        return await _load(kube_config, merged, context, origin=f"kubeconfig {places}", base=None)

    return load


def kubeconfig_data(data: Mapping[str, Any], context: str | None = None, origin: str = "kubeconfig") -> AccessSource:
    """Access from a kubeconfig that someone else wrote, such as one in a Secret; `origin` names it in errors.

    It may hold data only: what would have us run a program or read a file of ours is refused.
    """

    async def load() -> Access:
        _refuse_reaching_out(data, origin)
        from kubernetes.aio.config import kube_config  # noqa: PLC0415 - as above

        return await _load(kube_config, dict(data), context, origin=origin, base="")

    return load


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> AccessSource:
    """Access from the service account of the pod we run in, whose token is read anew every minute."""

    async def load() -> Access:
        from kubernetes.aio.client import Configuration  # noqa: PLC0415 - as above
        from kubernetes.aio.config import ConfigException, incluster_config  # noqa: PLC0415 - as above

        settings = Configuration()
        loader = incluster_config.InClusterConfigLoader(
            str(folder / "token"), str(folder / "ca.crt"), try_refresh_token=False
        )
        try:
            loader.load_and_set(settings)
            namespace = (folder / "namespace").read_text().strip()
        except (ConfigException, OSError) as error:
            raise ConfigError("in-cluster account", str(error), hint="outside a pod, give --kubeconfig") from error
        return _access(settings, namespace, origin="in-cluster account", lives_for=IN_CLUSTER_TOKEN_LIFE)

    return load


def _merge(kube_config: Any, places: str) -> Any:
    """The kubeconfig files at `places` (separated as in $KUBECONFIG) as one."""
    from yaml import YAMLError  # noqa: PLC0415 - as above

    hint = "give --kubeconfig FILE, set KUBECONFIG, or start a cluster: starling local up NAME"
    given = [Path(place).expanduser() for place in places.split(os.pathsep) if place]
    found = [str(place) for place in given if place.exists()]
    if not found:
        raise ConfigError("", f"no kubeconfig at {places}", hint=hint)
    try:
        return kube_config.KubeConfigMerger(os.pathsep.join(found)).config
    except (YAMLError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {places}", f"can't be read: {error}", hint=hint) from error
    except (AttributeError, TypeError) as error:  # what the loader does with a list, a text or nothing
        raise ConfigError(f"kubeconfig {places}", "isn't a kubeconfig", hint=hint) from error


async def _load(kube_config: Any, data: Any, context: str | None, *, origin: str, base: str | None) -> Access:
    """Run the official loader over one kubeconfig and take its Configuration."""
    from kubernetes.aio.client import Configuration  # noqa: PLC0415 - as above
    from kubernetes.aio.config import ConfigException  # noqa: PLC0415 - as above

    settings = Configuration()
    with tempfile.TemporaryDirectory(prefix="starling-") as folder:
        try:
            loader = kube_config.KubeConfigLoader(
                data, active_context=context, config_base_path=base, temp_file_path=folder
            )
            with _complaints() as complaints:
                await loader.load_and_set(settings)
            # No await between the loader writing keys to files and this reading them, so that clearing its table
            # (it would go on naming files that are gone) takes nothing from another load.
            _refuse_silent_plugin(loader, settings, complaints)
            current = loader.current_context.get("context") or {}
            return _access(settings, current.get("namespace") or "default", origin)
        except (ConfigException, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            hint = "kubectl config get-contexts lists the contexts"
            raise ConfigError(origin, f"unusable: {error}", hint=hint) from error
        finally:
            kube_config._cleanup_temp_files()  # noqa: SLF001 - its only way to forget keys before exit


def _refuse_reaching_out(data: Mapping[str, Any], origin: str) -> None:
    entries = [entry.get(kind) for kind in ("cluster", "user") for entry in data.get(f"{kind}s") or ()]
    for entry in entries:
        if reaching := REACHING_OUT & set(entry or ()):
            hint = "put certificates and tokens into the kubeconfig itself: kubectl config view --raw --flatten"
            raise ConfigError(origin, f"{', '.join(sorted(reaching))} isn't allowed here", hint=hint)


def _refuse_silent_plugin(loader: Any, settings: Any, complaints: Sequence[str]) -> None:
    """The loader logs an exec plugin's failure and goes on as nobody; we don't."""
    user = loader._user  # noqa: SLF001 - not told otherwise
    if user is not None and "exec" in user and not settings.api_key and not settings.cert_file:
        why = "; ".join(complaints) or "it said nothing"
        raise ValueError(f"the exec plugin {user['exec']['command']!r} gave no credentials: {why}")


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the loader logs meanwhile, instead of it being printed."""
    logger, heard = logging.getLogger("kubernetes.aio.config.kube_config"), list[str]()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener = Listener(logging.ERROR)
    logger.addHandler(listener)
    try:
        yield heard
    finally:
        logger.removeHandler(listener)


def _access(settings: Any, namespace: str, origin: str, lives_for: float | None = None) -> Access:
    server = str(settings.host)
    if not server.startswith(("https://", "http://")):
        raise ConfigError(origin, f"server {server!r} isn't a URL")
    if server.startswith("http://") and settings.api_key and URL(server).host not in LOOPBACK:
        raise ConfigError(origin, f"credentials would go to {server} in clear text", hint="use an https:// server")
    if not settings.verify_ssl:
        raise ConfigError(
            origin,
            "insecure-skip-tls-verify is set; Starling always verifies",
            hint="put the cluster's CA in certificate-authority-data",
        )
    return Access(
        server=server.rstrip("/"),
        tls=_tls(settings) if server.startswith("https://") else None,
        authorization=_authorization(settings),
        namespace=namespace,
        tls_server_name=settings.tls_server_name,
        proxy=settings.proxy,
        lives_for=lives_for,
    )


def _tls(settings: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        # An empty password turns OpenSSL's prompt for an encrypted key into an error.
        context.load_cert_chain(settings.cert_file, settings.key_file, password="")
    return context


def _authorization(settings: Any) -> str | None:
    token = settings.api_key.get("BearerToken")
    if not token:
        return None
    scheme, _, credential = str(token).partition(" ")
    return f"{scheme.capitalize()} {credential.strip()}"
