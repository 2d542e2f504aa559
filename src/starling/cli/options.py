"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Context", "Kubeconfig"]

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", help="The cluster's kubeconfig; else $KUBECONFIG, ~/.kube/config or the pod's own account."
    ),
]
Context = Annotated[str | None, typer.Option("--context", help="The kubeconfig's context; else its current one.")]
