"""What makes an object the one it is: its kind and its key."""

from typing import Self

import msgspec

from starling.errors import InputError

__all__ = ["GroupVersionKind", "ObjectKey"]


class GroupVersionKind(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind at one API version, e.g. `apps`, `v1`, `Deployment`; the core group is ""."""

    group: str
    version: str
    kind: str

    @classmethod
    def from_api_version(cls, api_version: str, kind: str) -> Self:
        """Split what a manifest writes, `apps/v1` or `v1`."""
        group, slash, version = api_version.rpartition("/")
        if not version or "/" in group or (slash and not group):
            raise InputError(
                f"apiVersion {api_version!r} of {kind} is not a version or a group and a version",
                hint="write it like v1 or apps/v1",
            )
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """As a manifest writes it: `apps/v1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class ObjectKey(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """An object's identity within a cluster. The version is no part of it; cluster-scoped: namespace is ""."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"
