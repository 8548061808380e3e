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
    for axis, resource in zip(axes[:, 0], shown, strict=True):
        order = np.argsort(-np.array(resource.before), kind="stable")
        places = np.arange(len(order))
        axis.bar(
            places - 0.2,
            np.array(resource.before)[order],
            0.4,
            color=ORANGE,
            hatch="//",
            edgecolor=BLACK,
            linewidth=0.3,
            label="before",
        )
        axis.bar(places + 0.2, np.array(resource.after)[order], 0.4, color=BLUE, label="after")
        low, high = resource.mean * (1 - resource.tolerance), resource.mean * (1 + resource.tolerance)
        axis.axhspan(low, high, color=SKY, alpha=0.35, label=f"target, {resource.tolerance:.0%} around the mean")
        axis.set_title(f"{resource.resource} ({resource.unit})", fontsize=9, loc="left")
        axis.yaxis.set_major_formatter(lambda number, _, unit=resource.unit: amount(number, unit))
        axis.tick_params(labelsize=8)
        names = [str(resource.brokers[place]) for place in order] if len(order) <= FEW_BROKERS else []
        axis.set_xticks(places if names else [], names, fontsize=7)
        axis.margins(x=0.01)
    axes[0, 0].legend(fontsize=8, ncols=3, loc="upper right")
    axes[-1, 0].set_xlabel("broker, the highest load before the moves first")
    alt = " ".join(_alt_text(resource) for resource in shown)
    source = "; ".join(f"{resource.resource}: {resource.source}" for resource in shown)
    return Picture("before-after", "Brokers before and after the proposed moves", alt, source, png(drawing))


def _alt_text(resource: ResourceMove) -> str:
    before, after = max(resource.before), max(resource.after)
    return (
        f"{resource.resource}: the highest load of a broker changes from {amount(before, resource.unit)} to {amount(after, resource.unit)}, "
        f"the mean is {amount(resource.mean, resource.unit)}."
    )


def skew_over_time(found: Sequence[SkewAt], source: str) -> Picture | None:
    """Draw a line for each resource; None without data."""
    if not found:
        return None
    hours = sorted({row.hour for row in found})
    place = {hour_at: number for number, hour_at in enumerate(hours)}
    drawing, axes = figure(3.2)
    axis = axes[0, 0]
    ranges = []
    for number, resource in enumerate(sorted({row.resource for row in found})):
        line = sorted((place[row.hour], row.max_over_mean) for row in found if row.resource == resource)
        style = {"color": SERIES[number % len(SERIES)], "linestyle": DASHES[number % len(DASHES)]}
        axis.plot([x for x, _ in line], [y for _, y in line], label=plain(resource), linewidth=1.4, **style)
        ranges.append(f"{resource} from {line[0][1]:.2f} to {line[-1][1]:.2f}, at most {max(y for _, y in line):.2f}")
    axis.axhline(1.0, color=BLACK, linewidth=0.6)
    shown = np.unique(np.linspace(0, len(hours) - 1, 10).astype(int))
    axis.set_xticks(shown, [hour(hours[number]) for number in shown], rotation=30, ha="right", fontsize=8)
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
    reasons = sorted({partition.reason for partition in shown})
    for number, reason in enumerate(reasons):
        rows = [place for place, partition in enumerate(shown) if partition.reason == reason]
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
    axis.set_yticks(
        range(len(shown)), [plain(f"{partition.topic}-{partition.partition}") for partition in shown], fontsize=8
    )
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
    near = [disk for disk in found if disk.capacity_bytes is not None and disk.days_low is not None]
    shown = sorted(near, key=lambda disk: (disk.days_low or 0.0, disk.broker))[:MAX_BARS][::-1]
    if not shown:
        return None
    drawing, axes = figure(1.2 + 0.24 * len(shown))
    axis = axes[0, 0]
    horizon = max(disk.horizon_days for disk in shown)
    for row, disk in enumerate(shown):
        low, high = disk.days_low or 0.0, disk.horizon_days if disk.days_high is None else disk.days_high
        axis.plot([low, high], [row, row], color=BLUE, linewidth=4, solid_capstyle="butt")
        if disk.days_high is None:
            axis.plot([high], [row], marker=">", color=BLUE, markersize=8)
        if disk.days is not None:
            axis.plot([disk.days], [row], marker="o", color=VERMILION, markeredgecolor=BLACK, markersize=6)
    axis.set_yticks(range(len(shown)), [f"broker {disk.broker}" for disk in shown], fontsize=8)
    ends = [horizon if disk.days_high is None else disk.days_high for disk in shown]
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
