"""A cluster that has never answered gets no work, and its units say so: who is sent there would only wait."""

import yaml

from starling.aio import SYSTEM_CLOCK
from starling.engine import ClusterAccess, Limits, ReconciliationSettings
from starling.engine.connection import Connection
from starling.kube import Unreachable
from starling.local import LocalCluster
from tests.integration.clusters import through
from tests.integration.relay import Relay
from tests.waiting import until


async def test_a_connection_begins_with_an_answer(cluster: LocalCluster) -> None:
    """Until there is one, nothing is ready there, not even for those who want no kind, and the trouble is told."""
    data = yaml.safe_load(cluster.kubeconfig.read_text())
    server = data["clusters"][0]["cluster"]["server"]
    async with Relay(int(server.rpartition(":")[2])) as relay:
        relay.cut()
        access = ClusterAccess(through(cluster, relay.port))
        connection = Connection("c", access, ReconciliationSettings(), limits=Limits(), clock=SYSTEM_CLOCK)
        connection.start()
        try:
            await until(lambda: isinstance(connection.trouble(()), Unreachable))
            assert not connection.ready(())
            await relay.mend()
            await until(lambda: connection.ready(()))
            assert connection.trouble(()) is None
        finally:
            await connection.close()
