"""HTML page of a report: one file without scripts and without external resources.

A Content-Security-Policy enforces this: it allows only embedded pictures and the page's own style. Every text from a cluster is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from balance_analytics.model.report_input import ProposedMoves, ReportInput
from balance_analytics.report import tables
from balance_analytics.report.charts import before_after, disk_forecast, hot_partitions, skew_over_time
from balance_analytics.report.drawing import Picture
from balance_analytics.report.formatting import amount, hour, percent
from balance_analytics.report.heat_map import heat_map

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:.85rem}caption{text-align:left;font-weight:600}"
    "th,td{border-bottom:1px solid #bbb;padding:.2rem .6rem;text-align:left}img{max-width:100%;height:auto}"
    "figcaption{font-size:.85rem;color:#333}figure{margin:1.5rem 0}summary{cursor:pointer}.wide{overflow-x:auto}"
)


def pictures_of(report: ReportInput) -> tuple[Picture, ...]:
    """Draw every picture for which there is data, in the order of the page."""
    result = report.result
    sources = {skew.resource: skew.source for skew in result.skew}
    skew_source = "hourly facts; " + "; ".join(f"{name}: {source}" for name, source in sources.items())
    pictures = (
        heat_map(
            result.heat_map,
            f"hourly facts, bytes in: {sources.get('bytes_in', 'offsets')}, by the leader of most minutes",
        ),
        None if report.moves is None else before_after(report.moves),
        skew_over_time(result.skew_over_time, skew_source),
        hot_partitions(result.hot_partitions, result.hot_rule),
        disk_forecast(result.forecasts),
    )
    return tuple(picture for picture in pictures if picture is not None)


def page_of(report: ReportInput, pictures: Sequence[Picture]) -> str:
    """Return the page."""
    result = report.result
    title = f"Balance of {report.title}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_introduction(report))}</p>",
        tables.left_out_table(result),
        _moves(report.moves),
        tables.skew_table(result),
        *map(_figure, pictures),
        f'<details><summary>Every broker</summary><div class="wide">{tables.brokers_table(result)}</div></details>',
        f'<details><summary>Hot partitions</summary><div class="wide">{tables.hot_table(result)}</div></details>',
        f'<details><summary>Disks</summary><div class="wide">{tables.forecast_table(result)}</div></details>',
        f"<p>{f'Created {escape(report.made_at)}, cluster' if report.made_at else 'Cluster'} {escape(result.cluster_id)}.</p>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main></body></html>\n"
    )


def _introduction(report: ReportInput) -> str:
    result = report.result
    window, leaders = result.window, result.leader_imbalance
    return (
        f"{result.partitions:,} partitions of {result.topics:,} topics on {len(result.brokers):,} brokers, from {hour(window.start)} to "
        f"{hour(window.end)} UTC; {window.hours_seen} of {window.hours} hours have data. {leaders.not_preferred:,} partitions "
        f"({percent(leaders.ratio)}) are not led by their preferred replica, {leaders.without_leader:,} have no leader."
    )


def _moves(moves: ProposedMoves | None) -> str:
    if moves is None:
        return "<h2>Proposed moves</h2><p>No proposal was requested.</p>"
    if not moves.partitions:
        summary = "<p>No moves are needed.</p>"
    else:
        named = (
            f" They are in the Reassignment {escape(moves.name)}, which is executed only after approval."
            if moves.name
            else ""
        )
        summary = (
            f"<p>{moves.partitions:,} partitions change, {moves.leaders_only:,} of them only their leader, which copies no data. "
            f"{escape(amount(moves.copied_bytes))} are copied; any plan with the same result must copy at least "
            f"{escape(amount(moves.lower_bound_bytes))}.{named}</p>"
        )
    unreached = "".join(f"<li>{escape(reason)}</li>" for reason in moves.unreached)
    missed = f"<p>Not reached:</p><ul>{unreached}</ul>" if unreached else ""
    figures = f'<details><summary>Every broker before and after</summary><div class="wide">{tables.moves_table(moves)}</div></details>'
    return f"<h2>Proposed moves</h2>{summary}{missed}{figures}"


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f'<figure><h2>{escape(picture.heading)}</h2><img alt="{escape(picture.alt)}" src="data:image/png;base64,{data}">'
        f"<figcaption>Source: {escape(picture.source)}.</figcaption></figure>"
    )
