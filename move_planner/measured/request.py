"""What a plan over several measured resources is asked for; a request that contradicts itself is refused with ValueError.

Leaves out every decision.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from controller_core.model.columns import BoolArray, IntArray
from move_planner.request import MAX_BROKERS, MAX_REPLICATION_FACTOR, MAX_TOTAL_LOAD, LoadArray, Racks
from move_planner.targets import TOLERANCE

MAX_RESOURCES = 16
"""Resources of one plan: four are usual; each is a row of the planner's tables and a pass over them."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One measure: `each` is what a replica of a partition costs any broker, `led` what its leader bears on top; int64 by partition.

    `tolerance` is the part of its target by which a broker may be off. `capacity`: the most that a broker may have, by id; brokers
    that are not named have no limit.
    """

    name: str
    each: LoadArray
    led: LoadArray
    tolerance: float = TOLERANCE
    capacity: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRequest:
    """A question to the planner of measured load.

    `replicas`: int32 of shape (partitions, slots), broker ids, the (preferred) leader first, padded with -1 on the right.
    `bytes`: what copying one replica of each partition costs. `brokers`: those that may hold replicas, with their racks, which
    count when all brokers that stay have one; brokers found in `replicas` alone are drained. `excluded_brokers` neither gain nor
    lose anything; `excluded`: partitions that keep their replicas and their order. `budget_bytes`: most bytes copied.
    """

    replicas: IntArray
    brokers: Racks
    bytes: LoadArray
    resources: tuple[Resource, ...]
    drained: AbstractSet[int] = frozenset()
    excluded_brokers: AbstractSet[int] = frozenset()
    excluded: BoolArray | None = None
    budget_bytes: int | None = None

    def check(self) -> None:
        """Raise ValueError that says what is wrong."""
        partitions, slots = self.replicas.shape
        if len(self.brokers) > MAX_BROKERS:
            raise ValueError(f"{len(self.brokers)} brokers are more than a plan can have, {MAX_BROKERS}")
        if slots > MAX_REPLICATION_FACTOR:
            raise ValueError(f"replica lists of {slots} are longer than {MAX_REPLICATION_FACTOR}")
        if not 0 < len(self.resources) <= MAX_RESOURCES:
            raise ValueError(f"{len(self.resources)} resources: a plan has 1 to {MAX_RESOURCES}")
        if self.drained & self.excluded_brokers:
            raise ValueError(f"brokers {sorted(self.drained & self.excluded_brokers)} are drained and excluded")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise ValueError(f"a budget of {self.budget_bytes} bytes is negative")
        if self.excluded is not None and len(self.excluded) != partitions:
            raise ValueError(f"excluded must have one entry for each of the {partitions} partitions")
        _check_loads("bytes", self.bytes, partitions, slots)
        for resource in self.resources:
            _check_loads(f"{resource.name}.each", resource.each, partitions, slots)
            _check_loads(f"{resource.name}.led", resource.led, partitions, slots)
            if not 0 < resource.tolerance < 1:
                raise ValueError(f"{resource.name}: a tolerance of {resource.tolerance} is not between 0 and 1")
            if min(resource.capacity.values(), default=0) < 0:
                raise ValueError(f"{resource.name}: a capacity is negative: {min(resource.capacity.values())}")


def _check_loads(name: str, loads: LoadArray, partitions: int, slots: int) -> None:
    if len(loads) != partitions:
        raise ValueError(f"{name} must have one entry for each of the {partitions} partitions, and has {len(loads)}")
    if loads.dtype != np.int64:
        raise ValueError(f"{name} must be whole numbers (int64), and is {loads.dtype}: round it")
    if partitions and int(loads.min()) < 0:
        raise ValueError(f"{name} of the partition in row {int(loads.argmin())} is negative: {int(loads.min())}")
    if float(loads.sum(dtype=np.float64)) * slots > MAX_TOTAL_LOAD:
        raise ValueError(f"{name} sums to more than {MAX_TOTAL_LOAD}: give it in a larger unit")
