"""Lists of names in a message: the first few names, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

MAX_LISTED = 10
"""Names in a message; a plan or a topic may have thousands."""


def listed(names: Sequence[object], most: int = MAX_LISTED) -> str:
    """Return at most `most` names, in the given order.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
