"""Writes the generated references: `make docs`. A test compares them with what stands here."""

from pathlib import Path
from typing import Any

import typer

from starling.api import reference
from starling.cli.app import app

HERE = Path(__file__).parent / "reference"


def references() -> dict[Path, str]:
    """Every generated page, by where it stands."""
    return {HERE / "kinds.md": reference(), HERE / "cli.md": cli_reference()}


def cli_reference() -> str:
    """What `--help` says, command by command."""
    root = typer.main.get_command(app)
    context = root.context_class(root, info_name="starling", **root.context_settings)
    head = "# Commands\n\nWhat `--help` says of each. This page is generated from the code: `make docs`.\n"
    return head + "".join(_pages(root, context))


def _pages(command: Any, context: Any) -> list[str]:  # typer's own copy of click, whose types it keeps to itself
    context.terminal_width = context.max_content_width = 100
    pages = [f"\n## `{context.command_path}`\n\n```text\n{command.get_help(context).strip()}\n```\n"]
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            pages += _pages(child, child.context_class(child, info_name=name, parent=context))
    return pages


if __name__ == "__main__":
    for path, text in references().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
