"""Charts: brokers before and after, skew over time, hot partitions, disk forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from balance_analytics.model.report_input import ProposedMoves, ResourceMove
from balance_analytics.model.results import Forecast, HotPartition, SkewAt
from balance_analytics.report.drawing import (
    BLACK,
    BLUE,
    DASHES,
    GREEN,
    ORANGE,
    SERIES,
    SKY,
    VERMILION,
    Picture,
    figure,
    plain,
    png,
)
from balance_analytics.report.formatting import amount, days, hour

MAX_BARS = 25
"""Limit of partitions or disks in a chart; the tables have more."""

FEW_BROKERS = 40
"""Up to this number the bars are labelled with brokers."""


def before_after(moves: ProposedMoves) -> Picture | None:
    """Draw each resource of each broker before and after the moves, the highest load first; None without brokers."""
    shown = [resource for resource in moves.resources if resource.brokers]
    if not shown:
        return None
    drawing, axes = figure(2.3 * len(shown), rows=len(shown))
    for axis, one in zip(axes[:, 0], shown, strict=True):
        order = np.argsort(-np.array(one.before), kind="stable")
        places = np.arange(len(order))
        axis.bar(
            places - 0.2,
            np.array(one.before)[order],
            0.4,
            color=ORANGE,
            hatch="//",
            edgecolor=BLACK,
            linewidth=0.3,
            label="before",
        )
        axis.bar(places + 0.2, np.array(one.after)[order], 0.4, color=BLUE, label="after")
        low, high = one.mean * (1 - one.tolerance), one.mean * (1 + one.tolerance)
        axis.axhspan(low, high, color=SKY, alpha=0.35, label=f"target, {one.tolerance:.0%} around the mean")
        axis.set_title(f"{one.resource} ({one.unit})", fontsize=9, loc="left")
        axis.yaxis.set_major_formatter(lambda number, _, unit=one.unit: amount(number, unit))
        axis.tick_params(labelsize=8)
        names = [str(one.brokers[place]) for place in order] if len(order) <= FEW_BROKERS else []
        axis.set_xticks(places if names else [], names, fontsize=7)
        axis.margins(x=0.01)
    axes[0, 0].legend(fontsize=8, ncols=3, loc="upper right")
    axes[-1, 0].set_xlabel("broker, the highest load before the moves first")
    alt = " ".join(_alt_text(one) for one in shown)
    source = "; ".join(f"{one.resource}: {one.source}" for one in shown)
    return Picture("before-after", "Brokers before and after the proposed moves", alt, source, png(drawing))


def _alt_text(one: ResourceMove) -> str:
    before, after = max(one.before), max(one.after)
    return (
        f"{one.resource}: the highest load of a broker changes from {amount(before, one.unit)} to {amount(after, one.unit)}, "
        f"the mean is {amount(one.mean, one.unit)}."
    )


def skew_over_time(found: Sequence[SkewAt], source: str) -> Picture | None:
    """Draw a line for each resource; None without data."""
    if not found:
        return None
    hours = sorted({one.hour for one in found})
    place = {one: number for number, one in enumerate(hours)}
    drawing, axes = figure(3.2)
    axis = axes[0, 0]
    ranges = []
    for number, resource in enumerate(sorted({one.resource for one in found})):
        line = sorted((place[one.hour], one.max_over_mean) for one in found if one.resource == resource)
        style = {"color": SERIES[number % len(SERIES)], "linestyle": DASHES[number % len(DASHES)]}
        axis.plot([x for x, _ in line], [y for _, y in line], label=plain(resource), linewidth=1.4, **style)
        ranges.append(f"{resource} from {line[0][1]:.2f} to {line[-1][1]:.2f}, at most {max(y for _, y in line):.2f}")
    axis.axhline(1.0, color=BLACK, linewidth=0.6)
    shown = np.unique(np.linspace(0, len(hours) - 1, 10).astype(int))
    axis.set_xticks(shown, [hour(hours[one]) for one in shown], rotation=30, ha="right", fontsize=8)
    axis.set_ylabel("largest broker / mean")
    axis.legend(fontsize=8, ncols=3, loc="upper right")
    alt = f"Skew, largest broker over the mean, from {hour(hours[0])} to {hour(hours[-1])}: {'; '.join(ranges)}. 1 is even."
    return Picture("skew", "Skew over time", alt, source, png(drawing))


def hot_partitions(found: Sequence[HotPartition], rule: str) -> Picture | None:
    """Draw the hottest partitions as bars; None without hot partitions."""
    shown = list(found[:MAX_BARS])[::-1]
    if not shown:
        return None
    drawing, axes = figure(1.2 + 0.24 * len(shown))
    axis = axes[0, 0]
    reasons = sorted({one.reason for one in shown})
    for number, reason in enumerate(reasons):
        rows = [place for place, one in enumerate(shown) if one.reason == reason]
        colour, hatch = ((VERMILION, ""), (BLUE, "//"), (GREEN, ".."))[number % 3]
        axis.barh(
            rows,
            [shown[row].bytes_in_p95 for row in rows],
            color=colour,
            hatch=hatch,
            edgecolor=BLACK,
            linewidth=0.3,
            label=plain(reason),
        )
    axis.set_yticks(range(len(shown)), [plain(f"{one.topic}-{one.partition}") for one in shown], fontsize=8)
    axis.xaxis.set_major_formatter(lambda number, _: amount(number, "bytes/s"))
    axis.set_xlabel("bytes in, p95 of the hours")
    axis.legend(fontsize=8, loc="lower right")
    first = shown[-1]
    alt = (
        f"The {len(shown)} hottest partitions. The first is {first.topic}-{first.partition} with "
        f"{amount(first.bytes_in_p95, 'bytes/s')}, {first.over_topic:.1f} times the median of its topic ({first.reason})."
    )
    return Picture("hot-partitions", "Hot partitions", alt, f"p95 of the hours' bytes in; {rule}", png(drawing))


def disk_forecast(found: Sequence[Forecast]) -> Picture | None:
    """Draw the days until each disk is full, with their interval, the soonest first; None if no disk will be full within the horizon."""
    near = [one for one in found if one.capacity_bytes is not None and one.days_low is not None]
    shown = sorted(near, key=lambda one: (one.days_low or 0.0, one.broker))[:MAX_BARS][::-1]
    if not shown:
        return None
    drawing, axes = figure(1.2 + 0.24 * len(shown))
    axis = axes[0, 0]
    horizon = max(one.horizon_days for one in shown)
    for row, one in enumerate(shown):
        low, high = one.days_low or 0.0, one.horizon_days if one.days_high is None else one.days_high
        axis.plot([low, high], [row, row], color=BLUE, linewidth=4, solid_capstyle="butt")
        if one.days_high is None:
            axis.plot([high], [row], marker=">", color=BLUE, markersize=8)
        if one.days is not None:
            axis.plot([one.days], [row], marker="o", color=VERMILION, markeredgecolor=BLACK, markersize=6)
    axis.set_yticks(range(len(shown)), [f"broker {one.broker}" for one in shown], fontsize=8)
    ends = [horizon if one.days_high is None else one.days_high for one in shown]
    axis.set_xlim(0, max(1.0, *ends) * 1.02)
    axis.set_xlabel(
        "days from the end of the window; dot: most likely, bar: 90 percent interval, arrow: beyond the horizon"
    )
    first = shown[-1]
    alt = (
        f"Days until disks are full, {len(shown)} brokers. The soonest is broker {first.broker}: {days(first.days, horizon)}, "
        f"90 percent interval {days(first.days_low, horizon)} to {days(first.days_high, horizon)}."
    )
    return Picture("disk-forecast", "When disks are full", alt, first.method, png(drawing))
