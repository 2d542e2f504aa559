"""Bindings resolved for one cluster: texts that mention one another, and fields of the Cluster.

In a value, `$(NAME)` stands for another binding's value and `$$(NAME)` for the text `$(NAME)`; any other dollar is just
a dollar. What comes from a field is taken as it is.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starling.api.v1alpha1 import Binding, Value
from starling.errors import InputError
from starling.objects import canonical_json

__all__ = ["BindingError", "resolve_bindings"]

CLUSTER_NAME: Final = "CLUSTER_NAME"
LONGEST: Final = 4096
"""How long a value may be, which a Sync's schema says too; bindings that double one another would have no end."""
_MENTION: Final = re.compile(r"(\$?)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class BindingError(InputError):
    """Bindings that have no value on a cluster: they mention one another in a circle, or what isn't there."""

    reason = "BindingFailed"


def resolve_bindings(bindings: Sequence[Binding], cluster: Mapping[str, Any]) -> tuple[Value, ...]:
    """The bindings' values on a cluster, CLUSTER_NAME first and the others as written."""
    resolver = _Resolver({binding.name: binding for binding in bindings}, cluster)
    if CLUSTER_NAME in resolver.bindings:
        raise BindingError(f"{CLUSTER_NAME} is always the cluster's name", hint="give the binding another name")
    names = (CLUSTER_NAME, *resolver.bindings)
    return tuple(Value(name=name, value=resolver.value(name, ())) for name in names)


class _Resolver:
    """The bindings of one cluster; it keeps what it has resolved."""

    def __init__(self, bindings: Mapping[str, Binding], cluster: Mapping[str, Any]) -> None:
        self.bindings = bindings
        self._cluster = cluster
        self._name = str(cluster["metadata"]["name"])
        self._values: dict[str, str] = {CLUSTER_NAME: self._name}

    def value(self, name: str, path: tuple[str, ...]) -> str:
        """A binding's value; `path` are those that led to it."""
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            raise BindingError(f"bindings mention one another in a circle: {circle}", hint="break the circle")
        if name not in self._values:
            if name not in self.bindings:
                hint = f"bind {name}; to have it as text, write $$({name})"
                raise BindingError(f"binding {path[-1]} mentions $({name}), which isn't bound", hint=hint)
            self._values[name] = self._checked(name, self._resolved(self.bindings[name], (*path, name)))
        return self._values[name]

    def _resolved(self, binding: Binding, path: tuple[str, ...]) -> str:
        if binding.object_field_ref is not None:
            return self._field(binding.name, binding.object_field_ref.field_path)

        def mentioned(match: re.Match[str]) -> str:
            return f"$({match[2]})" if match[1] else self.value(match[2], path)

        return _MENTION.sub(mentioned, binding.value or "")

    def _field(self, name: str, pointer: str) -> str:
        """The text of a field of the Cluster; numbers and booleans as JSON has them."""
        found: Any = self._cluster
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                hint = f"set it, or bind {name} to something else"
                raise BindingError(f"binding {name}: Cluster {self._name} has no field {pointer}", hint=hint)
            found = found[key]
        if isinstance(found, str):
            return found
        if isinstance(found, bool | int | float):
            return canonical_json(found).decode()
        raise BindingError(f"binding {name}: field {pointer} of Cluster {self._name} is no text, number or boolean")

    def _checked(self, name: str, value: str) -> str:
        if len(value) > LONGEST:
            raise BindingError(f"binding {name} is longer than {LONGEST} characters on Cluster {self._name}")
        return value
