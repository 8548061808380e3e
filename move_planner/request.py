"""Requests for plans: the current assignment in columns, loads by resource, brokers, and the goals.

A request that contradicts itself raises ValueError. Plans over one load are requested with `one_load.PlanRequest`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray, IntArray

Racks = Mapping[int, str | None]
"""The rack of each broker, by its id; None where it has none."""

LoadArray = npt.NDArray[np.int64]
"""Bytes, or any other measure, by partition or by broker."""

MAX_BROKERS = 2_000
"""Brokers of one plan: several times the largest known clusters; the planner keeps tables of brokers by brokers."""

MAX_REPLICATION_FACTOR = 100
"""Kafka has no limit; more than a hundred replicas have no use, and columns are as wide as the longest list."""

MAX_TOTAL_LOAD = 2**60
"""An exabyte: sums stay exact in 64 bits, also when multiplied by a tolerance."""

MAX_RESOURCES = 16
"""Resources of one plan: four are usual; each is a row of the planner's tables, and one pass over them."""

TOLERANCE = 0.05
"""Default tolerance, 5 percent of the target: a smaller one costs more copies, and load changes by as much within an hour."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One measure: the load of each replica on its broker, and the additional load of the leader; int64 by partition.

    `tolerance`: allowed deviation of a broker, as a part of its target. `capacity`: maximum by broker id; other brokers have no
    limit. `unit`: a range reaches at least to the next multiples of it on both sides of the target.
    """

    name: str
    replica_load: LoadArray
    leader_load: LoadArray
    tolerance: float = TOLERANCE
    capacity: Mapping[int, int] = field(default_factory=dict)
    unit: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRequest:
    """A request for a plan.

    `replicas`: int32 of shape (partitions, slots), broker ids, the (preferred) leader first, padded with -1 on the right.
    `bytes`: bytes to copy for one replica of each partition. `brokers`: those that may hold replicas, with their racks, which
    count when all brokers that stay have one; brokers that occur only in `replicas` are drained. `excluded_brokers` neither gain
    nor lose anything; `excluded`: partitions that keep their replicas and their order. `budget_bytes`: limit of copied bytes.
    `leaders`: current leaders, -1 for none; without them the preferred ones. `replication_factor`: for all partitions; None keeps
    each as it is. `level`: whether loads are levelled; without it only drains, racks and replication factors cause moves.
    `racks`: whether second replicas in a rack are moved; replicas that move for another reason respect racks in any case.
    """

    replicas: IntArray
    brokers: Racks
    bytes: LoadArray
    resources: tuple[Resource, ...]
    drained: AbstractSet[int] = frozenset()
    excluded_brokers: AbstractSet[int] = frozenset()
    excluded: BoolArray | None = None
    budget_bytes: int | None = None
    leaders: IntArray | None = None
    replication_factor: int | None = None
    level: bool = True
    racks: bool = True

    def check(self) -> None:
        """Raise ValueError if the request contradicts itself."""
        partitions, slots = self.replicas.shape
        factor = self.replication_factor
        if len(self.brokers) > MAX_BROKERS:
            raise ValueError(f"{len(self.brokers)} brokers are more than a plan can have, {MAX_BROKERS}")
        if slots > MAX_REPLICATION_FACTOR:
            raise ValueError(f"replica lists of {slots} are longer than {MAX_REPLICATION_FACTOR}")
        if factor is not None and not 0 < factor <= MAX_REPLICATION_FACTOR:
            raise ValueError(f"replication factor {factor} is not between 1 and {MAX_REPLICATION_FACTOR}")
        if not 0 < len(self.resources) <= MAX_RESOURCES:
            raise ValueError(f"{len(self.resources)} resources: a plan has 1 to {MAX_RESOURCES}")
        if factor is not None and self.excluded_brokers:
            raise ValueError("the replication factor cannot be changed where brokers are excluded")
        if self.drained & self.excluded_brokers:
            raise ValueError(f"brokers {sorted(self.drained & self.excluded_brokers)} are drained and excluded")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise ValueError(f"a budget of {self.budget_bytes} bytes is negative")
        for name, column in (("excluded", self.excluded), ("leaders", self.leaders)):
            if column is not None and len(column) != partitions:
                raise ValueError(f"{name} must have one entry for each of the {partitions} partitions")
        copies = max(slots, factor or 1)
        _check_loads("bytes", self.bytes, partitions, copies)
        for resource in self.resources:
            _check_loads(f"{resource.name}.replica_load", resource.replica_load, partitions, copies)
            _check_loads(f"{resource.name}.leader_load", resource.leader_load, partitions, copies)
            if not 0 < resource.tolerance < 1:
                raise ValueError(f"{resource.name}: a tolerance of {resource.tolerance} is not between 0 and 1")
            if min(resource.capacity.values(), default=0) < 0:
                raise ValueError(f"{resource.name}: a capacity is negative: {min(resource.capacity.values())}")


def _check_loads(name: str, loads: LoadArray, partitions: int, copies: int) -> None:
    if len(loads) != partitions:
        raise ValueError(f"{name} must have one entry for each of the {partitions} partitions, and has {len(loads)}")
    if loads.dtype != np.int64:
        raise ValueError(f"{name} must be whole numbers (int64), and is {loads.dtype}: round it")
    if partitions and int(loads.min()) < 0:
        raise ValueError(f"{name} of the partition in row {int(loads.argmin())} is negative: {int(loads.min())}")
    if float(loads.sum(dtype=np.float64)) * copies > MAX_TOTAL_LOAD:
        raise ValueError(f"{name} sums to more than {MAX_TOTAL_LOAD}: give it in a larger unit")
