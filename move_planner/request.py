"""What a plan is asked for: the present assignment in columns, loads, brokers, and what should become of them.

Leaves out every decision; a request that contradicts itself is refused here with ValueError.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import IntArray

Racks = Mapping[int, str | None]
"""The rack of each broker, by its id; None where it has none."""

LoadArray = npt.NDArray[np.int64]
"""Bytes, or any other measure, by partition or by broker."""

MAX_BROKERS = 2_000
"""Brokers of one plan: several times the largest known clusters; the planner keeps tables of brokers by brokers."""

MAX_REPLICATION_FACTOR = 100
"""Kafka itself has no limit; a hundred copies are beyond any use, and columns are as wide as the longest list."""

MAX_TOTAL_LOAD = 2**60
"""An exabyte: sums stay exact in 64 bits, also when multiplied by a tolerance."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A question to the planner.

    `replicas`: int32 of shape (partitions, slots), broker ids in Kafka's order, padded with -1 on the right.
    `brokers`: every broker that may hold replicas afterwards, present or added, with its rack; those also in `drained` may not.
    A broker found in `replicas` alone is treated as drained. Racks count when all brokers that stay have one.
    `loads`: bytes of one replica by partition; without it every replica counts one. `leaders`: present leaders, -1 for none.
    `replication_factor`: for all partitions; None leaves each as it is. `budget_bytes`: most bytes copied; None for no limit.
    `level`: whether brokers and leaders are levelled as well; without it nothing moves but what drains, racks and factors need.
    `racks`: whether second replicas in a rack move for that alone; what moves for another reason heeds racks in any case.
    """

    replicas: IntArray
    brokers: Racks
    leaders: IntArray | None = None
    loads: LoadArray | None = None
    drained: AbstractSet[int] = frozenset()
    replication_factor: int | None = None
    budget_bytes: int | None = None
    level: bool = True
    racks: bool = True

    def checked_loads(self) -> LoadArray:
        """Return the load of a replica of each partition after checking the whole request: ValueError says what is wrong."""
        partitions = len(self.replicas)
        loads = np.ones(partitions, dtype=np.int64) if self.loads is None else np.asarray(self.loads, dtype=np.int64)
        factor = self.replication_factor
        if len(loads) != partitions or (self.leaders is not None and len(self.leaders) != partitions):
            raise ValueError(f"loads and leaders must have one entry for each of the {partitions} partitions")
        if partitions and int(loads.min()) < 0:
            raise ValueError(f"the load of the partition in row {int(loads.argmin())} is negative: {int(loads.min())}")
        if len(self.brokers) > MAX_BROKERS:
            raise ValueError(f"{len(self.brokers)} brokers are more than a plan can have, {MAX_BROKERS}")
        if factor is not None and not 0 < factor <= MAX_REPLICATION_FACTOR:
            raise ValueError(f"replication factor {factor} is not between 1 and {MAX_REPLICATION_FACTOR}")
        if self.replicas.shape[1] > MAX_REPLICATION_FACTOR:
            raise ValueError(f"replica lists of {self.replicas.shape[1]} are longer than {MAX_REPLICATION_FACTOR}")
        if float(loads.sum(dtype=np.float64)) * max(factor or 1, self.replicas.shape[1]) > MAX_TOTAL_LOAD:
            raise ValueError(f"the loads sum to more than {MAX_TOTAL_LOAD}: give them in a larger unit")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise ValueError(f"a budget of {self.budget_bytes} bytes is negative")
        return loads
