"""The API server proves who it is, and wants to know who asks."""

import ssl

import aiohttp
import pytest

from starling.local import LocalCluster


def trusting(cluster: LocalCluster) -> ssl.SSLContext:
    """Give what trusts the cluster's authority and nobody else, with the strictest checks."""
    context = ssl.create_default_context(cafile=str(cluster.pki.authority.certificate))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


async def status(cluster: LocalCluster, context: ssl.SSLContext, host: str = "127.0.0.1") -> int:
    """Ask for the namespaces; give the answer's status."""
    url = f"https://{host}:{cluster.port}/api/v1/namespaces"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
        return response.status


async def test_the_server_is_known_by_its_own_authority_only(cluster: LocalCluster) -> None:
    """Without the cluster's CA, the connection fails its verification."""
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await status(cluster, ssl.create_default_context())


async def test_an_unknown_client_gets_nothing(cluster: LocalCluster) -> None:
    """Without a client certificate, the API refuses."""
    assert await status(cluster, trusting(cluster)) in (401, 403)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_administrator_gets_all(cluster: LocalCluster, host: str) -> None:
    """With the administrator's certificate the API answers, by address and by name, under strict verification."""
    context = trusting(cluster)
    admin = cluster.pki.pair("admin")
    context.load_cert_chain(admin.certificate, admin.key)
    assert await status(cluster, context, host) == 200


async def test_roles_are_enforced(cluster: LocalCluster) -> None:
    """The scheduler's certificate is known, and may not list all that the administrator may."""
    context = trusting(cluster)
    scheduler = cluster.pki.pair("kube-scheduler")
    context.load_cert_chain(scheduler.certificate, scheduler.key)
    url = f"{cluster.server}/api/v1/secrets"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
        assert response.status == 403
        assert "system:kube-scheduler" in await response.text()
