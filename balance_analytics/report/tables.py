"""HTML tables of a report, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from balance_analytics.model.report_input import ProposedMoves
from balance_analytics.model.results import Result
from balance_analytics.report.formatting import amount, days, percent

MAX_ROWS = 500
"""Limit of rows in a table; programs read result.json, which has more."""


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with escaped cells."""
    listed = list(rows)
    cut = f" (the first {MAX_ROWS} of {len(listed)})" if len(listed) > MAX_ROWS else ""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in listed[:MAX_ROWS])
    return (
        f"<table><caption>{escape(caption + cut)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def skew_table(result: Result) -> str:
    """Return the table of skew by resource, with the source of the data."""
    rows = [
        (
            skew.resource,
            f"{skew.max_over_mean:.3f}",
            f"{skew.gini:.3f}",
            f"{skew.coefficient_of_variation:.3f}",
            skew.source,
        )
        for skew in result.skew
    ]
    return table("Skew over the window", ("resource", "largest / mean", "Gini", "variation", "source"), rows)


def brokers_table(result: Result) -> str:
    """Return the table of brokers."""
    rows = [
        (
            str(broker.broker),
            broker.rack or "",
            f"{broker.leaders:,}",
            f"{broker.replicas:,}",
            amount(broker.bytes_in_mean, "bytes/s"),
            amount(broker.bytes_in_p95, "bytes/s"),
            amount(broker.bytes_out_mean, "bytes/s"),
            amount(broker.disk_bytes),
        )
        for broker in result.brokers
    ]
    headings = ("broker", "rack", "leaders", "replicas", "bytes in, mean", "bytes in, p95", "bytes out, mean", "disk")
    return table("Brokers", headings, rows)


def hot_table(result: Result) -> str:
    """Return the table of hot partitions."""
    rows = [
        (
            f"{hot_partition.topic}-{hot_partition.partition}",
            str(hot_partition.leader),
            amount(hot_partition.bytes_in_p95, "bytes/s"),
            f"{hot_partition.over_topic:.1f}",
            percent(hot_partition.of_broker),
            hot_partition.reason,
        )
        for hot_partition in result.hot_partitions
    ]
    headings = (
        "partition",
        "leader",
        "bytes in, p95",
        "ratio to its topic's median",
        "part of a mean broker",
        "reason",
    )
    return table(f"Hot partitions: {result.hot_partitions_found} found", headings, rows)


def forecast_table(result: Result) -> str:
    """Return the table of disk forecasts."""
    rows = [
        (
            str(forecast.broker),
            amount(forecast.disk_bytes),
            amount(forecast.capacity_bytes),
            amount(forecast.growth_bytes_per_day, "bytes/day"),
            "capacity unknown" if forecast.capacity_bytes is None else days(forecast.days, forecast.horizon_days),
            ""
            if forecast.capacity_bytes is None
            else f"{days(forecast.days_low, forecast.horizon_days)} to {days(forecast.days_high, forecast.horizon_days)}",
        )
        for forecast in result.forecasts
    ]
    return table("Disks", ("broker", "used", "capacity", "growth", "full in", "90 percent interval"), rows)


def moves_table(moves: ProposedMoves) -> str:
    """Return the table of brokers before and after the moves, for each resource."""
    headings = ["broker"]
    for resource in moves.resources:
        headings += [f"{resource.resource} before", f"{resource.resource} after"]
    brokers = moves.resources[0].brokers if moves.resources else ()
    rows = []
    for index, broker in enumerate(brokers):
        row = [str(broker)]
        for resource in moves.resources:
            row += [amount(resource.before[index], resource.unit), amount(resource.after[index], resource.unit)]
        rows.append(row)
    return table("Brokers before and after the proposed moves", headings, rows)


def left_out_table(result: Result) -> str:
    """Return the table of data that the study lacks, or an empty text if it lacks none."""
    rows = [(left_out.what, f"{left_out.count:,}", left_out.remedy) for left_out in result.left_out]
    return table("Missing data", ("what", "how much", "what to do"), rows) if rows else ""
