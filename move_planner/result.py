"""Plans: steps in columns, loads by resource and broker, the lower bound, and unreached goals."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray, IntArray
from controller_core.model.columns import unpad
from move_planner.request import LoadArray


class Reason(IntEnum):
    """Reason why a partition's replicas change; a step has the first one that applies."""

    DRAIN = 0
    """A replica leaves a broker that is drained or unknown."""
    RACK = 1
    """Two replicas were in one rack while another rack had none."""
    FACTOR = 2
    """The replication factor changes."""
    OVERLOAD = 3
    """Load moves from one broker to another, because the first has too much or the second too little."""
    LEADERS = 4
    """The same replicas in another order: another preferred leader, nothing copied."""


@dataclass(frozen=True, slots=True)
class Step:
    """Change of one partition: its row in the request, its new replicas, the bytes to copy."""

    row: int
    replicas: tuple[int, ...]
    bytes: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Unreached:
    """A goal that the plan does not reach: the explanation, and the broker if it concerns one."""

    broker: int | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class ResourceFigures:
    """One resource by broker, in the order of `Plan.ids`; `target`, `lower` and `upper` are 0 for drained brokers.

    An excluded broker has its current load as target and range.
    """

    name: str
    target: npt.NDArray[np.float64]
    lower: LoadArray
    upper: LoadArray
    before: LoadArray
    after: LoadArray

    def outside(self, held: LoadArray) -> LoadArray:
        """Return how far each broker is outside its range with these loads."""
        found: LoadArray = np.maximum(0, held - self.upper) + np.maximum(0, self.lower - held)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps in order: changes of only leaders, which copy nothing, then drains, racks, replication factors, load.

    `rows`, `bytes` and `reasons` have an entry for each step, `replicas` a padded row of broker ids. No step depends on another
    one, so any prefix is valid, but a part of a plan may leave a broker fuller than the whole plan does: see `concurrency` of a
    Reassignment. `lower_bound_bytes`: the least that any plan must copy that drains, keeps racks and brings each resource into its
    range; a plan that does not reach everything (see `unreached`) may be below it. `cut_steps` and `cut_bytes`: the part of a plan
    over one load that a budget cut off.
    """

    rows: npt.NDArray[np.intp]
    replicas: IntArray
    bytes: LoadArray
    reasons: npt.NDArray[np.int8]
    copied_bytes: int
    copied_replicas: int
    lower_bound_bytes: int
    ids: IntArray
    drained: BoolArray
    resources: tuple[ResourceFigures, ...]
    unreached: tuple[Unreached, ...]
    cut_steps: int = 0
    cut_bytes: int = 0

    def steps(self) -> Iterator[Step]:
        """Yield the steps as values, one at a time."""
        for row, new, amount, reason in zip(self.rows, self.replicas, self.bytes, self.reasons, strict=True):
            yield Step(int(row), unpad(new), int(amount), Reason(int(reason)))
