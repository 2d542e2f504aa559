"""The error tree. Everything Starling raises on purpose is a StarlingError.

    StarlingError                     reason, hint
    ├── OutOfTime                     what was waited for didn't happen in time
    ├── InputError                    something a person wrote is wrong
    │   ├── ManifestError             … in a manifest: file, document and line
    │   ├── RenderError               … in what is rendered; drawn in starling.rendering.errors
    │   └── BindingError              … in bindings: a circle, or a name that isn't there
    ├── SchemaError                   a Struct that no CRD can express: a mistake in Starling itself
    ├── EngineError                   a unit couldn't be synced
    │   ├── NotOurs                   … since an object that it wants is someone else's
    │   ├── RecordTaken               … since another process has it in hand
    │   ├── Refused                   … since the API server refused a write; the remedy is known
    │   └── Vetoed                    … since a callback said no
    ├── SourceError                   a repository has no new version for us; drawn in starling.sources.errors
    ├── ToolMissing                   kustomize or helm can't be had here; drawn in starling.rendering.errors
    ├── LocalError                    a control plane on this machine
    │   └── ToolMissingError          … that needs a program which isn't there
    ├── NotFetched                    a Source has no version yet
    ├── Undeliverable                 a cluster answers, and yet nothing can be delivered there
    ├── NotEnrolled                   a hub doesn't know a cluster, or no longer
    ├── Contested                     two clusters call themselves the same
    └── KubeError                     an exchange with an API server; drawn in starling.kube.errors

A message names the object and the cause; `hint` says the way out; `reason` is the CamelCase word that
conditions and metrics carry. Causes are chained with `from`.
"""

from typing import ClassVar

__all__ = ["InputError", "OutOfTime", "StarlingError"]


class StarlingError(Exception):
    """The root: an error whose message is meant for the user."""

    reason: ClassVar[str] = "Failed"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(StarlingError):
    """Something a person wrote (a flag, a file, a field) is wrong; retrying won't help."""

    reason = "InvalidInput"


class OutOfTime(StarlingError):
    """What was waited for didn't happen in time; it may yet."""

    reason = "TimedOut"
