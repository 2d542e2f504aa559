"""How our own processes run in a cluster: one pod, as nobody in particular, that can write to nothing but its cache."""

from typing import Final

from starling.api.documents import Document, document

__all__ = ["deployment"]

HTTP_PORT: Final = 8080


def deployment(name: str, image: str, command: str, *options: str) -> Document:
    """A Deployment of one of our commands, with the account of its own name."""
    selector = {"app.kubernetes.io/name": "starling", "app.kubernetes.io/component": command}
    spec = {
        "replicas": 1,
        # Two at once would have to wait for each other's Lease; the old one goes first.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": selector}, "spec": _pod(name, image, (command, *options))},
    }
    return document("apps/v1", "Deployment", name, spec=spec)


def _pod(name: str, image: str, command: tuple[str, ...]) -> Document:
    return {
        "serviceAccountName": name,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(image, command)],
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    }


def _container(image: str, command: tuple[str, ...]) -> Document:
    return {
        "name": command[0],
        "image": image,
        # The kubelet asks from outside the pod.
        "args": [*command, "--address", "0.0.0.0", "--port", str(HTTP_PORT), "--data", "/cache/starling"],  # noqa: S104
        "env": [{"name": "HOME", "value": "/cache"}, {"name": "XDG_CACHE_HOME", "value": "/cache"}],
        "ports": [{"name": "http", "containerPort": HTTP_PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - the pod's own
    }
