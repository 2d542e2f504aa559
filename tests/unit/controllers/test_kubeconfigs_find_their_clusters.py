"""A kubeconfig that changes concerns the clusters that use it, as they were heard of last."""

from starling.api import Cluster, ObjectMeta
from starling.api.v1alpha1 import ClusterSpec, LocalSecretReference, Pull, Push
from starling.controllers.push import kubeconfig_of
from starling.runtime import Index, Key

A, B = Key("n", "a"), Key("n", "b")


def cluster(name: str, secret: str = "") -> Cluster:
    """One that is reached by a Secret's kubeconfig, or that dials in."""
    push = Push(kubeconfig_secret=LocalSecretReference(name=secret))
    spec = ClusterSpec(push=push) if secret else ClusterSpec(pull=Pull())
    return Cluster(metadata=ObjectMeta(name=name, namespace="n"), spec=spec)


def test_a_secret_may_have_several_users_and_lose_them() -> None:
    """Clusters come, move to another Secret, dial in instead, and go; a Secret in another namespace is another."""
    users, shared, other = Index(kubeconfig_of), Key("n", "shared"), Key("n", "other")
    users.change(None, cluster("a", "shared"))
    users.change(None, cluster("b", "shared"))
    assert users.of(shared) == {A, B}
    assert not users.of(other) | users.of(Key("m", "shared"))
    users.change(cluster("a", "shared"), cluster("a", "other"))
    assert [*users.of(shared), *users.of(other)] == [B, A]
    users.change(cluster("b", "shared"), cluster("b"))
    users.change(cluster("b"), None)
    assert users.of(shared) == set()
    users.change(cluster("a", "other"), cluster("a", "other"))
    assert users.of(other) == {A}
    users.change(cluster("a", "other"), None)
    assert users.of(other) == set()
