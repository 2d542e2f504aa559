"""A real API server takes all that an agent needs, without a warning, and knows every field of it."""

from starling.api.enrolment import agent_installation
from starling.objects import GroupVersionKind
from tests.integration.controllers.delivering.world import World


async def test_every_document_is_taken_without_a_warning(world: World) -> None:
    """They can be applied in order, and nothing in them is unknown, deprecated or unsafe by the strictest standard."""
    remarks = list[str]()
    for document in agent_installation("registry.example/starling:1"):
        group, _, version = document["apiVersion"].rpartition("/")
        resource = await world.downstream.discovery.resource(GroupVersionKind(group, version, document["kind"]))
        metadata = document["metadata"]
        if document["kind"] == "Namespace":
            metadata["labels"]["pod-security.kubernetes.io/warn"] = "restricted"
        answer = await world.downstream.apply(resource.ref(metadata["name"], metadata.get("namespace", "")), document)
        remarks.extend(answer.warnings)
    assert remarks == []
