"""The 95 percent point of Student's t distribution, so that the study needs no statistics package."""

from __future__ import annotations

_FEW = (6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331)
"""For 1 to 9 degrees of freedom, where the expansion below is off by more than one in a thousand."""

_NORMAL = 1.6448536


def t95(degrees: int) -> float:
    """Return the point that t stays below in 95 of 100 cases: a two-sided 90 percent interval.

    From 10 degrees of freedom on by the Cornish-Fisher expansion around the normal distribution.

    >>> t95(6), round(t95(10), 3), round(t95(120), 3)
    (1.9432, 1.811, 1.658)
    """
    if degrees <= len(_FEW):
        return _FEW[degrees - 1]
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2
