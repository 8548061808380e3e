"""State of logs by hour: offsets and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lab.generated_load.layout import Array, Layout
from lab.generated_load.pace import bytes_in, first_sizes


@dataclass(frozen=True, slots=True, eq=False)
class Hour:
    """An hour: `messages` (float64) come in after `end` (float64, offsets at its start); `size` is that at its start in bytes.

    `kept` is how many of the hour's bytes stay.
    """

    hour: int
    leader: Array
    end: Array
    size: Array
    messages: Array
    kept: Array
    reset: Array
    """bool: starts again at offset 0 in this hour."""


def hours(layout: Layout, count: int | None = None) -> Iterator[Hour]:
    """Yield the hours of the load, or the first `count`, which may be more than the load has."""
    record_bytes = layout.t_record_bytes[layout.topic]
    kept = layout.t_kept[layout.topic]
    size = first_sizes(layout)
    end = np.floor(size / record_bytes) * 2
    for hour in range(layout.spec.hours if count is None else count):
        reset = np.zeros(layout.spec.partitions, dtype=bool)
        reset[[row for row, at in layout.resets.items() if at == hour]] = True
        end, size = np.where(reset, 0.0, end), np.where(reset, 0.0, size)
        taken = bytes_in(layout, hour)
        messages = taken / record_bytes
        yield Hour(hour, layout.leaders(hour), end, size, messages, taken * kept, reset)
        end, size = end + messages, size + taken * kept
