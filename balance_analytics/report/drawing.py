"""Drawing of pictures as PNGs: figures, colours and the output, which has the same bytes for the same values.

Lines and bars have colours of Okabe and Ito's palette, which colour-blind readers can distinguish, and also differ in dashes or hatching.
Amounts use the colour map cividis for the same reason. matplotlib's object interface needs neither a display nor global state.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colours of lines, in this order, without yellow, which is too light on white."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
AMOUNTS = "cividis"
UNKNOWN = "#B0B0B0"
DOTS_PER_INCH = 100
WIDTH_INCHES = 10.0
MAX_HEIGHT_INCHES = 40.0
"""4,000 pixels: 300 brokers at 0.12 inches each."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG with its heading, its text alternative (`alt`) and the source of its data."""

    name: str
    heading: str
    alt: str
    source: str
    png: bytes


def figure(height_inches: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, an array of (rows, columns)."""
    drawing = Figure(
        figsize=(WIDTH_INCHES, min(height_inches, MAX_HEIGHT_INCHES)), dpi=DOTS_PER_INCH, layout="constrained"
    )
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def png(drawing: Figure) -> bytes:
    """Return the figure as PNG, without the name of the software, so that the bytes do not change with its version."""
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def plain(text: str) -> str:
    r"""Escape a name so that matplotlib does not parse it as a formula.

    >>> plain("a$b$")
    'a\\$b\\$'
    """
    return text.replace("$", r"\$")
