"""What people's repositories already say in annotations of other tools, as far as the engine honours it (§6.4).

One small function for each thing that is said; a tool's spelling stands here and nowhere else.
"""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["kept", "left_out", "sync_wave"]

_SYNC_WAVE: Final = "argocd.argoproj.io/sync-wave"
# What Go's strconv.Atoi takes, as Argo CD uses it: a sign, ASCII digits, 64 bits. Python's int() takes more.
_INTEGER: Final = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)
_LARGEST: Final = 2**63
_SYNC_OPTIONS: Final = "argocd.argoproj.io/sync-options"
_KEPT: Final = (
    ("helm.sh/resource-policy", "keep"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("client.lifecycle.config.k8s.io/deletion", "detach"),
)


_HOOKS: Final = ("argocd.argoproj.io/hook", "helm.sh/hook")
_NOT_AT_A_SYNC: Final = frozenset(
    {"Skip", "SyncFail", "PreDelete", "PostDelete"}
    | {"pre-delete", "post-delete", "pre-rollback", "post-rollback", "test", "test-success", "test-failure"}
)


def left_out(annotations: Mapping[str, str]) -> bool:
    """Whether an object is a hook of something else than a sync: a deletion, a rollback, a failure, a test."""
    said = next((annotations[name] for name in _HOOKS if name in annotations), "")
    hooks = {hook.strip() for hook in said.split(",") if hook.strip()}
    return bool(hooks) and hooks <= _NOT_AT_A_SYNC


def kept(annotations: Mapping[str, str]) -> bool:
    """Whether an object is marked never to be deleted by us."""
    if any(annotations.get(name, "").strip().lower() == value for name, value in _KEPT):
        return True
    options = annotations.get(_SYNC_OPTIONS, "")
    return any(option.strip() in ("Prune=false", "Delete=false") for option in options.split(","))


def sync_wave(annotations: Mapping[str, str]) -> int:
    """An object's wave. What is no integer is as good as none, as in Argo CD."""
    text = annotations.get(_SYNC_WAVE, "")
    return int(text) if _INTEGER.fullmatch(text) and -_LARGEST <= int(text) < _LARGEST else 0
