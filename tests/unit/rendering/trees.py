"""Trees of files for tests."""

from collections.abc import Mapping
from pathlib import Path


def planted(root: Path, files: Mapping[str, str]) -> Path:
    """The folder, resolved, with these files in it; a text `-> x` makes a link to x."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            place.symlink_to(text.removeprefix("-> "))
        else:
            place.write_text(text)
    return root.resolve()


def config_map(name: str, namespace: str = "", **data: str) -> str:
    """A ConfigMap as YAML."""
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name}"]
    lines += [f"  namespace: {namespace}"] if namespace else []
    lines += ["data:", *(f"  {key}: '{value}'" for key, value in data.items())] if data else []
    return "\n".join(lines) + "\n"
