"""Objects in waves, and Deployments that become ready when a test says so: no controller runs here."""

import copy

from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.scene import Json, Scene

__all__ = ["in_wave", "make_ready"]


def in_wave(number: int, content: Json) -> Json:
    """A manifest that asks for a wave."""
    content = copy.deepcopy(content)
    content["metadata"].setdefault("annotations", {})["argocd.argoproj.io/sync-wave"] = str(number)
    return content


async def make_ready(scene: Scene, name: str = "web", *, ready: int = 1) -> None:
    """Have a Deployment of one replica report that it is there; or that it isn't."""
    ref = DEPLOYMENTS.ref(name, scene.namespace)
    generation = (await scene.client.get(ref)).json()["metadata"]["generation"]
    counts = dict.fromkeys(("replicas", "updatedReplicas"), 1) | dict.fromkeys(
        ("readyReplicas", "availableReplicas"), ready
    )
    conditions = [
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        {"type": "Available", "status": "True" if ready else "False"},
    ]
    status = {"observedGeneration": generation, **counts, "conditions": conditions}
    await scene.client.merge_patch(ref.status, {"status": status}, manager="deployer")
