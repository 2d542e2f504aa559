"""Progress where there is no terminal: readable, and not too much of it."""

from starling.cli.progress import LineByLine


def test_counting_is_shown_now_and_then() -> None:
    """Messages that differ only in numbers appear every ten seconds; others at once."""
    now = 0.0
    lines: list[str] = []
    show = LineByLine(lines.append, lambda: now)
    show("compiling v1")
    for second in range(1, 26):
        now = float(second)
        show(f"compiling v1: {second} of 99 packages")
    show("built v1 in 25 s")
    assert lines == [
        "compiling v1",
        "compiling v1: 1 of 99 packages",
        "compiling v1: 11 of 99 packages",
        "compiling v1: 21 of 99 packages",
        "built v1 in 25 s",
    ]
