"""Numbers of bytes as Kubernetes writes quantities: an integer, or text such as 500Gi.

The CRDs reject milli and exponents.
"""

from __future__ import annotations

import re
from decimal import Decimal

PATTERN = re.compile(r"^([0-9]{1,18})(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$", re.ASCII)
"""As the CRDs have it; eighteen digits stay within 64 bits."""

FACTORS = {
    suffix: base**power
    for base, suffixes in ((1000, ("k", "M", "G", "T", "P")), (1024, ("Ki", "Mi", "Gi", "Ti", "Pi")))
    for power, suffix in enumerate(suffixes, start=1)
}


def read_bytes(raw: int | str) -> int:
    """Read a number of bytes, rounded down; ValueError where it is none.

    >>> [read_bytes(7), read_bytes("500Gi"), read_bytes("1.5k")]
    [7, 536870912000, 1500]
    """
    if isinstance(raw, int):
        return raw
    found = PATTERN.match(raw)
    if found is None:
        raise ValueError(f"{raw!r} is not a number of bytes, such as 1000000000 or 500Gi")
    number, fraction, suffix = found.groups()
    return int(Decimal(number + (fraction or "")) * FACTORS.get(suffix or "", 1))
