"""Lists in messages and statuses: the first few items, and how many more there are."""

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


def first_few(texts: Sequence[str], most: int = MAX_LISTED) -> tuple[str, ...]:
    """Return at most `most` texts, and a further one with the number of the others.

    >>> first_few(["a", "b", "c"], 2)
    ('a', 'b', 'and 1 more')
    """
    more = len(texts) - most
    return (*texts[:most], *([f"and {more} more"] if more > 0 else []))
