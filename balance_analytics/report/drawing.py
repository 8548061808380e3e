"""Pictures as PNGs: one way to make them, the same bytes for the same values, and colours that everybody can tell apart.

Lines and bars take colours of Okabe and Ito's palette (made for colour-blind readers) and differ in dashes or hatching as well;
amounts take cividis, which looks the same to nearly everybody. matplotlib's object interface draws without a display and without
global state. Leaves out what is drawn.
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
"""For lines, in this order: yellow is too light on white for them."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
AMOUNTS = "cividis"
UNKNOWN = "#B0B0B0"
DOTS_PER_INCH = 100
WIDTH_INCHES = 10.0
MAX_HEIGHT_INCHES = 40.0
"""A picture of 4,000 dots: 300 brokers at 0.12 inches."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG with what it shows in words (`alt`, for those who do not see it), and where its figures come from."""

    name: str
    heading: str
    alt: str
    source: str
    png: bytes


def figure(height_inches: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, an array of (rows, columns)."""
    made = Figure(
        figsize=(WIDTH_INCHES, min(height_inches, MAX_HEIGHT_INCHES)), dpi=DOTS_PER_INCH, layout="constrained"
    )
    FigureCanvasAgg(made)
    axes = made.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
    return made, axes


def png(made: Figure) -> bytes:
    """Return the figure's bytes, without the name of the software, so that they are the same with the next release of it."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def plain(text: str) -> str:
    r"""Keep names from being read as formulas.

    >>> plain("a$b$")
    'a\\$b\\$'
    """
    return text.replace("$", r"\$")
