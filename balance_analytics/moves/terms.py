"""What a proposal is asked for, and the same as a question to the planner.

Five resources. A broker has on its `disk` every copy there. `bytes_in` is what arrives by network: of every replica, from clients
where it leads, else from the leader. `client_bytes_in` is the clients' part alone, which follows the leader and is what skew is
measured by. `bytes_out` leaves the leader: to consumers, and once to every follower. `leaders` counts. Leaves out the planner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.moves.partition_loads import LoadsError, PartitionLoads
from move_planner import MeasuredRequest, Resource

RESOURCES = ("disk", "bytes_in", "client_bytes_in", "bytes_out", "leaders")
TOLERANCE = 0.05
"""Each resource of each broker within 5 percent of the mean: less is gone with the next day's load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The cluster's brokers and what the user wants of them.

    `racks`: by broker id, None where it has none. `capacities`: by resource, then by broker: bytes, or bytes/s.
    `away`: brokers that are not alive; they keep what they have, as do the excluded.
    """

    racks: Mapping[int, str | None]
    away: frozenset[int] = frozenset()
    drained: frozenset[int] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    excluded_topics: frozenset[str] = frozenset()
    capacities: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    budget_bytes: int | None = None
    resources: tuple[str, ...] = RESOURCES
    """Those that shall be levelled; the others may become less even."""


def request_of(loads: PartitionLoads, terms: Terms) -> MeasuredRequest:
    """Return the question; LoadsError when capacities name no resource.

    The preferred leader is taken to lead: an election brings it there, and costs nothing.
    """
    unknown = sorted({*terms.capacities, *terms.resources} - set(RESOURCES))
    if unknown:
        raise LoadsError(f"there is no resource {', '.join(unknown)}; resources are {', '.join(RESOURCES)}")
    nothing = np.zeros(len(loads), dtype=np.int64)
    followers = np.maximum((loads.replicas >= 0).sum(axis=1) - 1, 0)
    out = loads.bytes_in * followers + (nothing if loads.bytes_out is None else loads.bytes_out)
    columns = {
        "disk": (loads.size_bytes, nothing),
        "bytes_in": (loads.bytes_in, nothing),
        "client_bytes_in": (nothing, loads.bytes_in),
        "bytes_out": (nothing, out),
        "leaders": (nothing, nothing + 1),
    }
    excluded_topics = [number for number, name in enumerate(loads.topics) if name in terms.excluded_topics]
    excluded = ~loads.known | np.isin(loads.topic, excluded_topics)
    return MeasuredRequest(
        replicas=loads.replicas,
        brokers={broker: rack for broker, rack in terms.racks.items() if broker not in terms.away},
        bytes=loads.size_bytes,
        resources=tuple(
            Resource(name, *columns[name], tolerance=terms.tolerance, capacity=terms.capacities.get(name, {}))
            for name in terms.resources
        ),
        drained=terms.drained,
        excluded_brokers=terms.excluded_brokers | (terms.away - terms.drained),
        excluded=excluded,
        budget_bytes=terms.budget_bytes,
    )
