"""Numbers and times in the form of a result."""

from __future__ import annotations

import math
import time

DIGITS = 6
"""Significant digits: more than the figures have, and few enough that the order of a sum does not change them."""


def rounded(number: float) -> float:
    """Return a number with `DIGITS` significant digits.

    >>> rounded(1234567.8), rounded(0.12345678), rounded(0.0)
    (1234570.0, 0.123457, 0.0)
    """
    return round(number, DIGITS - 1 - math.floor(math.log10(abs(number)))) if number else 0.0


def text_of(seconds: int) -> str:
    """Return a time as ISO 8601 in UTC.

    >>> text_of(0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
