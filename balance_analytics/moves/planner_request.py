"""Request to the planner: the loads of partitions, and the user's settings.

There are five resources. `disk` is the size of all replicas of a broker. `bytes_in` is its incoming traffic: for each replica, from
clients if it is the leader, otherwise from the leader. `client_bytes_in` is only the traffic from clients, which moves with the leader;
the study measures skew by it. `bytes_out` is the leader's outgoing traffic: to consumers, and once to each follower. `leaders` is the
number of led partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.moves.partition_loads import LoadsError, PartitionLoads
from move_planner import MeasuredRequest, Resource

RESOURCES = ("disk", "bytes_in", "client_bytes_in", "bytes_out", "leaders")
TOLERANCE = 0.05
"""Each resource of each broker should be within 5 percent of the mean: a closer match would not last a day, as loads change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """The cluster's brokers, and the goals and limits of a plan.

    `racks`: by broker id, None for a broker without one. `capacities`: by resource, then by broker: bytes, or bytes/s.
    `offline`: brokers that are not alive; they keep their replicas, like excluded brokers. `drained` brokers lose all replicas.
    """

    racks: Mapping[int, str | None]
    offline: frozenset[int] = frozenset()
    drained: frozenset[int] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    excluded_topics: frozenset[str] = frozenset()
    capacities: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    budget_bytes: int | None = None
    resources: tuple[str, ...] = RESOURCES
    """Resources to balance; others may become less even."""


def request_of(loads: PartitionLoads, settings: PlannerSettings) -> MeasuredRequest:
    """Return the planner's request. Raises LoadsError if settings name an unknown resource.

    Preferred leaders are assumed to be the leaders: an election of them copies nothing.
    """
    unknown = sorted({*settings.capacities, *settings.resources} - set(RESOURCES))
    if unknown:
        raise LoadsError(f"unknown resource {', '.join(unknown)}; resources are {', '.join(RESOURCES)}")
    zeros = np.zeros(len(loads), dtype=np.int64)
    followers = np.maximum((loads.replicas >= 0).sum(axis=1) - 1, 0)
    out = loads.bytes_in * followers + (zeros if loads.bytes_out is None else loads.bytes_out)
    columns = {
        "disk": (loads.size_bytes, zeros),
        "bytes_in": (loads.bytes_in, zeros),
        "client_bytes_in": (zeros, loads.bytes_in),
        "bytes_out": (zeros, out),
        "leaders": (zeros, zeros + 1),
    }
    excluded_topics = [number for number, name in enumerate(loads.topics) if name in settings.excluded_topics]
    excluded = ~loads.known | np.isin(loads.topic, excluded_topics)
    return MeasuredRequest(
        replicas=loads.replicas,
        brokers={broker: rack for broker, rack in settings.racks.items() if broker not in settings.offline},
        bytes=loads.size_bytes,
        resources=tuple(
            Resource(name, *columns[name], tolerance=settings.tolerance, capacity=settings.capacities.get(name, {}))
            for name in settings.resources
        ),
        drained=settings.drained,
        excluded_brokers=settings.excluded_brokers | (settings.offline - settings.drained),
        excluded=excluded,
        budget_bytes=settings.budget_bytes,
    )
