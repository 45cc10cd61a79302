"""Text that others chose, made fit for a terminal and a log's line."""

from __future__ import annotations


def printable(text: str, most: int) -> str:
    """At most so many characters of it, on one line and without control characters: `?` stands for what does not
    print.
    """
    start = "".join(char if char.isprintable() else "?" for char in text[: most + 1])
    return start if len(start) <= most else start[: most - 3] + "..."
