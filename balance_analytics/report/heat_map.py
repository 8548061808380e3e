"""Heat map of bytes in, by broker and hour."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps

from balance_analytics.model.results import HeatMap
from balance_analytics.report.drawing import AMOUNTS, UNKNOWN, Picture, figure, png
from balance_analytics.report.formatting import amount, hour

MAX_TICKS = 12
MAX_BROKER_TICKS = 40
INCHES_EACH = 0.14


def heat_map(found: HeatMap, source: str) -> Picture | None:
    """Draw the heat map; None without data."""
    if not found.brokers or not found.hours:
        return None
    cells = np.array(
        [[np.nan if value is None else value for value in row] for row in found.bytes_in], dtype=np.float64
    )
    drawing, axes = figure(max(3.0, 1.6 + INCHES_EACH * len(found.brokers)))
    axis = axes[0, 0]
    colours = colormaps[AMOUNTS].with_extremes(bad=UNKNOWN)
    image = axis.imshow(np.ma.masked_invalid(cells), aspect="auto", interpolation="nearest", cmap=colours, vmin=0)
    shown = np.unique(np.linspace(0, len(found.hours) - 1, MAX_TICKS).astype(int))
    axis.set_xticks(shown, [hour(found.hours[number]) for number in shown], rotation=30, ha="right", fontsize=8)
    step = max(1, -(-len(found.brokers) // MAX_BROKER_TICKS))
    rows = list(range(0, len(found.brokers), step))
    axis.set_yticks(rows, [str(found.brokers[number]) for number in rows], fontsize=8)
    axis.set_ylabel("broker")
    axis.set_xlabel(f"hour (UTC), {found.hours_per_column} h per column; grey: unknown")
    bar = drawing.colorbar(image, ax=axis, pad=0.01)
    bar.ax.yaxis.set_major_formatter(lambda number, _: amount(number, "bytes/s"))
    return Picture("heat-map", "Bytes in by broker and hour", _alt(found, cells), source, png(drawing))


def _alt(found: HeatMap, cells: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    title = f"Heat map of {len(found.brokers)} brokers over {len(found.hours)} columns from {hour(found.hours[0])} to {hour(found.hours[-1])}."
    if np.isnan(cells).all():
        return f"{title} All values are unknown."
    row, column = np.unravel_index(int(np.nanargmax(cells)), cells.shape)
    highest = amount(float(cells[row, column]), "bytes/s")
    unknown = int(np.isnan(cells).sum())
    grey = f" {unknown} values are unknown." if unknown else ""
    return f"{title} The highest value is {highest}, broker {found.brokers[row]} at {hour(found.hours[column])}.{grey}"
