"""A plan over several resources: its steps in columns, figures by resource and broker, the bound, and what was not reached.

Leaves out how it was found.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import BoolArray, IntArray
from move_planner.request import LoadArray
from move_planner.result import Step, Unreached, steps_of


@dataclass(frozen=True, slots=True, eq=False)
class ResourceFigures:
    """One resource by broker, in the order of `MeasuredPlan.ids`; `target`, `lower` and `upper` are 0 for drained brokers.

    A broker that is excluded has what it has for its target and range.
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
class MeasuredPlan:
    """What to do, in order: changes of leaders alone first, which copy nothing, then drains, racks, load (the fullest broker first).

    `rows`, `bytes` and `reasons` have an entry for each step, `replicas` a padded row of broker ids. A step depends on no other
    one, but half a plan may have a broker fuller than the whole one leaves it: see `concurrency` of a Reassignment.
    `lower_bound_bytes` is what any plan must copy that drains, keeps racks and brings each resource into its range; it is 0 where
    leaders alone can do it, and a plan that does not reach everything (see `unreached`) may be below it.
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

    def steps(self) -> Iterator[Step]:
        """Yield the steps as values, one at a time."""
        return steps_of(self.rows, self.replicas, self.bytes, self.reasons)
