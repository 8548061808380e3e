"""Formatting of amounts, parts and times in English."""

from __future__ import annotations

KIBI = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def amount(number: float | None, unit: str = "bytes") -> str:
    """Format an amount with three significant digits.

    >>> amount(1536.0), amount(0.25, "bytes/s"), amount(7, "partitions"), amount(None)
    ('1.5 KiB', '0.25 B/s', '7', 'unknown')
    """
    if number is None:
        return "unknown"
    if not unit.startswith("bytes"):
        return f"{number:,.0f}"
    power = 0
    while abs(number) >= KIBI and power < len(UNITS) - 1:
        number, power = number / KIBI, power + 1
    return f"{number:.3g} {UNITS[power]}{unit.removeprefix('bytes')}"


def percent(part: float) -> str:
    """Format a part of 1 as percent.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * part:.1f} %"


def days(number: float | None, horizon: float) -> str:
    """Format a number of days; None means beyond the horizon.

    >>> days(3.26, 90.0), days(None, 90.0)
    ('3.3 days', 'beyond 90 days')
    """
    return f"beyond {horizon:.0f} days" if number is None else f"{number:.1f} days"


def hour(text: str) -> str:
    """Shorten an ISO 8601 time to hours and minutes.

    >>> hour("2026-11-21T09:00:00+00:00")
    '2026-11-21 09:00'
    """
    return text[:16].replace("T", " ")
