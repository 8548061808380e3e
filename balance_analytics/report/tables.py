"""Tables of HTML, every text escaped. Leaves out the page around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from balance_analytics.model.report_input import ProposedMoves
from balance_analytics.model.results import Result
from balance_analytics.report.wording import amount, days, percent

MAX_ROWS = 500
"""Of one table: a page of more is read by programs, and for them there is result.json."""


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with escaped cells."""
    listed = list(rows)
    cut = f" (the first {MAX_ROWS} of {len(listed)})" if len(listed) > MAX_ROWS else ""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in listed[:MAX_ROWS])
    return (
        f"<table><caption>{escape(caption + cut)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def skew_table(result: Result) -> str:
    """Show how unevenly brokers share each resource, and where the figures come from."""
    rows = [
        (one.resource, f"{one.max_over_mean:.3f}", f"{one.gini:.3f}", f"{one.coefficient_of_variation:.3f}", one.source)
        for one in result.skew
    ]
    return table("Skew over the window", ("resource", "largest / mean", "Gini", "variation", "source"), rows)


def brokers_table(result: Result) -> str:
    """Show every broker."""
    rows = [
        (
            str(one.broker),
            one.rack or "",
            f"{one.leaders:,}",
            f"{one.replicas:,}",
            amount(one.bytes_in_mean, "bytes/s"),
            amount(one.bytes_in_p95, "bytes/s"),
            amount(one.bytes_out_mean, "bytes/s"),
            amount(one.disk_bytes),
        )
        for one in result.brokers
    ]
    headings = ("broker", "rack", "leaders", "replicas", "bytes in, mean", "bytes in, p95", "bytes out, mean", "disk")
    return table("Brokers", headings, rows)


def hot_table(result: Result) -> str:
    """Show the hot partitions."""
    rows = [
        (
            f"{one.topic}-{one.partition}",
            str(one.leader),
            amount(one.bytes_in_p95, "bytes/s"),
            f"{one.over_topic:.1f}",
            percent(one.of_broker),
            one.reason,
        )
        for one in result.hot_partitions
    ]
    headings = ("partition", "leader", "bytes in, p95", "times its topic's median", "of a mean broker", "reason")
    return table(f"Hot partitions: {result.hot_partitions_found} found", headings, rows)


def forecast_table(result: Result) -> str:
    """Show when each disk is full."""
    rows = [
        (
            str(one.broker),
            amount(one.disk_bytes),
            amount(one.capacity_bytes),
            amount(one.growth_bytes_per_day, "bytes/day"),
            "capacity not known" if one.capacity_bytes is None else days(one.days, one.horizon_days),
            ""
            if one.capacity_bytes is None
            else f"{days(one.days_low, one.horizon_days)} to {days(one.days_high, one.horizon_days)}",
        )
        for one in result.forecasts
    ]
    return table("Disks", ("broker", "used", "capacity", "growth", "full in", "90 percent interval"), rows)


def moves_table(moves: ProposedMoves) -> str:
    """Show every broker before and after, for each resource."""
    headings = ["broker"]
    for one in moves.resources:
        headings += [f"{one.resource} before", f"{one.resource} after"]
    brokers = moves.resources[0].brokers if moves.resources else ()
    rows = []
    for place, broker in enumerate(brokers):
        row = [str(broker)]
        for one in moves.resources:
            row += [amount(one.before[place], one.unit), amount(one.after[place], one.unit)]
        rows.append(row)
    return table("Brokers before and after the proposed moves", headings, rows)


def left_out_table(result: Result) -> str:
    """Show what the study went on without."""
    rows = [(one.what, f"{one.count:,}", one.remedy) for one in result.left_out]
    return table("What the study went on without", ("what", "how much", "what to do"), rows) if rows else ""
