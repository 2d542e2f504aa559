"""With --workloads, pods run: on a simulated node, by Kubernetes' own controllers and scheduler."""

import os
import signal

from starling.local import LocalClusters
from tests.integration.local.conftest import KubectlOn

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: prepare, image: "example.org/prepare:1"}]
      containers: [{name: web, image: "example.org/web:1"}, {name: side, image: "example.org/side:1"}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: once, image: "example.org/once:1"}]
"""


async def test_pods_run(clusters: LocalClusters, kubectl_on: KubectlOn) -> None:
    """Workloads are added to a running cluster: Deployments get Available, Jobs Complete, and what is deleted goes."""
    [plain] = await clusters.up("demo")
    before = plain.pids()
    [cluster] = await clusters.up("demo", workloads=True)
    assert set(cluster.pids()) == set(cluster.components)
    assert before.items() <= cluster.pids().items()

    kubectl_on(cluster, "apply", "-f", "-", stdin=WORKLOADS)
    kubectl_on(cluster, "wait", "deployment/web", "--for=condition=Available", "--timeout=30s")
    kubectl_on(cluster, "wait", "job/once", "--for=condition=Complete", "--timeout=30s")
    kubectl_on(cluster, "delete", "pods", "-l", "app=web", "--wait", "--timeout=30s")
    kubectl_on(cluster, "create", "namespace", "passing")
    kubectl_on(cluster, "delete", "namespace", "passing", "--wait", "--timeout=30s")

    os.kill(cluster.pids()["kwok"], signal.SIGKILL)
    await clusters.up("demo")
    assert set(cluster.pids()) == set(cluster.components)
    kubectl_on(cluster, "scale", "deployment/web", "--replicas=5")
    kubectl_on(cluster, "wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=5", "--timeout=30s")

    await clusters.down()
    assert cluster.pids() == {}
