"""What can go wrong on the way from files to manifests.

    ToolMissing                  kustomize or helm can't be had here
    RenderError                  the files, or what is asked of them, are wrong: an InputError
    ├── PathMissing              the path isn't in the tree
    ├── NotAllowed               it wants what it may not have: something remote, a plugin, a file outside
    ├── ValuesMissing            an object or key that values are to come from isn't there
    ├── ToolFailed               kustomize or helm refused it, wanted too much or took too long
    └── SubstitutionError        variables can't be put into an object
        └── VariableNotSet       … in strict mode, since one has no value and no default

A file that can't be read as manifests raises starling.objects.ManifestError, with its place.
"""

from starling.errors import InputError, StarlingError

__all__ = [
    "NotAllowed",
    "PathMissing",
    "RenderError",
    "SubstitutionError",
    "ToolFailed",
    "ToolMissing",
    "ValuesMissing",
    "VariableNotSet",
]


class RenderError(InputError):
    """Files that can't be made manifests; names are relative to the tree."""

    reason = "RenderFailed"


class PathMissing(RenderError):
    """The path to render isn't in the tree."""

    reason = "PathMissing"


class NotAllowed(RenderError):
    """Something that only those may have who were allowed to, or nobody."""

    reason = "NotAllowed"


class ValuesMissing(RenderError):
    """A ConfigMap or Secret that values are to come from, or a key in it, isn't there; it may yet come."""

    reason = "ValuesMissing"


class ToolMissing(StarlingError):
    """A program that this needs isn't on this machine and can't be built."""

    reason = "ToolMissing"


class ToolFailed(RenderError):
    """A tool that didn't do it; the message is what it said."""

    reason = "ToolFailed"


class SubstitutionError(RenderError):
    """Variables that can't be put into a text or an object; never says their values, which may be secret."""

    reason = "SubstitutionFailed"


class VariableNotSet(SubstitutionError):
    """A variable that strict mode wants a value for."""

    reason = "VariableNotSet"

    def __init__(self, variable: str, where: str = "") -> None:
        hint = f"give {variable} a value, or write ${{{variable}:-default}}; $${{{variable}}} stays as text"
        super().__init__(f"{where}: {variable} is not set" if where else f"{variable} is not set", hint=hint)
        self.variable = variable
