"""ConfigMaps, which most tests use for an object that stands for any."""

from typing import Any

import msgspec

from starling.kube import Metadata, Resource

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


class ConfigMap(msgspec.Struct):
    """What tests read of one."""

    metadata: Metadata
    data: dict[str, str] = {}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A manifest, labelled with its name."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": name}}, "data": data}
