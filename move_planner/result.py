"""A plan: its steps in columns, figures by broker, the bound beside them, and what was not reached and why.

Leaves out how it was found.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import IntArray, unpad
from move_planner.request import LoadArray


class Reason(IntEnum):
    """Why a partition's replicas change, in the order in which steps are taken; a step has the first that applies."""

    DRAIN = 0
    """A replica leaves a broker that is drained, or unknown."""
    RACK = 1
    """Two replicas were in one rack while another rack had none."""
    FACTOR = 2
    """The replication factor changes."""
    OVERLOAD = 3
    """A broker gives load to another, because it has too much or the other too little."""
    LEADERS = 4
    """The same replicas in another order: another preferred leader, no bytes copied."""


@dataclass(frozen=True, slots=True)
class Step:
    """One partition's change: its row in the request, its new replicas, the bytes to copy."""

    row: int
    replicas: tuple[int, ...]
    bytes: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Unreached:
    """Something that the plan does not reach: in words, and the broker it is about, if it is about one."""

    broker: int | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class BrokerFigures:
    """Figures by broker, every broker concerned in a row, by id: bytes (or counts) and preferred leaders.

    `target` is a broker's part of the load, `lower` and `upper` its range; all three are 0 for drained brokers.
    """

    ids: IntArray
    drained: npt.NDArray[np.bool_]
    target: npt.NDArray[np.float64]
    lower: LoadArray
    upper: LoadArray
    load_before: LoadArray
    load_after: LoadArray
    leads_before: LoadArray
    leads_after: LoadArray


def steps_of(
    rows: npt.NDArray[np.intp], replicas: IntArray, copied: LoadArray, reasons: npt.NDArray[np.int8]
) -> Iterator[Step]:
    """Yield the steps of a plan's columns as values, one at a time."""
    for row, new, amount, reason in zip(rows, replicas, copied, reasons, strict=True):
        yield Step(int(row), unpad(new), int(amount), Reason(int(reason)))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What to do, in order: any prefix of the steps is valid by itself.

    `rows`, `bytes` and `reasons` have an entry for each step, `replicas` a padded row of broker ids. `lower_bound_bytes` is what
    any plan that reaches the same ranges and drains must copy; with a budget, `copied_bytes` may be below it, and `cut_steps` and
    `cut_bytes` are what the budget left out.
    """

    rows: npt.NDArray[np.intp]
    replicas: IntArray
    bytes: LoadArray
    reasons: npt.NDArray[np.int8]
    copied_bytes: int
    copied_replicas: int
    lower_bound_bytes: int
    cut_steps: int
    cut_bytes: int
    brokers: BrokerFigures
    unreached: tuple[Unreached, ...]

    def steps(self) -> Iterator[Step]:
        """Yield the steps as values, one at a time."""
        return steps_of(self.rows, self.replicas, self.bytes, self.reasons)
