"""The field reference says all that the code says of a field."""

from starling.api import reference


def test_a_row_says_path_type_default_meaning_and_rule() -> None:
    """A field is one row: where it is, what it takes, what it is when absent, and what holds for it."""
    rows: dict[str, str] = {}
    for line in reference().splitlines():
        if line.startswith("| `"):
            rows.setdefault(line.split("|")[1].strip(), line)
    assert rows["`spec.suspend`"].startswith("| `spec.suspend` | boolean | `false` | Whether to stop")
    assert "| required |" in rows["`spec.stages[].name`"]
    assert "| `Continue`, `Pause`, `Rollback` | `Pause` |" in rows["`spec.onFailure`"]
    assert rows["`spec.git.ref`"].endswith("Rule: set exactly one of branch, tag, semver, commit. |")
    assert "`^(100\\|[1-9][0-9]?)%$`" in rows["`spec.maxConcurrent`"], "a bar would end the cell"
