"""What is told of a cluster is told whole: a field that is left out would be told again for ever."""

from starling.api.v1alpha1 import AssemblageSpec, ProxyAssemblageStatus
from starling.controllers.delivery import _whole_spec, _whole_status


def test_every_field_of_a_spec_is_said() -> None:
    """Also those at their defaults."""
    assert _whole_spec(AssemblageSpec(instance="fleet")).keys() == set(AssemblageSpec.__struct_encode_fields__)


def test_every_field_of_a_status_is_said_but_for_the_hubs_own() -> None:
    """What controllers write there isn't the cluster's to say."""
    said = set(ProxyAssemblageStatus.__struct_encode_fields__) - {"observedGeneration", "conditions"}
    assert _whole_status(ProxyAssemblageStatus()).keys() == said
