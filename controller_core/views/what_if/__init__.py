"""What-if: effects of the loss, the removal or the drain of brokers on a cluster, computed without changing it.

A `Snapshot` has the partitions of the cluster in columns, a `Scenario` the brokers. `outage` elects leaders by the rules of the
controller, `repair` plans the copies with the planner of Reassignments, `spread` counts racks, `document` puts all of it into one
document (`schema`). Steps take milliseconds for 200,000 partitions, except the plan, which takes about a second.
"""

from controller_core.views.what_if.document import what_if
from controller_core.views.what_if.repair import DEFAULT_BYTES_PER_SECOND, Rate, RateSource
from controller_core.views.what_if.scenario import (
    Action,
    Scenario,
    ScenarioError,
    drain_brokers,
    lose_brokers,
    lose_rack,
    remove_brokers,
)
from controller_core.views.what_if.schema import WhatIfDocument
from controller_core.views.what_if.snapshot import UNKNOWN_MIN_ISR, BrokerState, Columns, Snapshot, snapshot_of

__all__ = [
    "DEFAULT_BYTES_PER_SECOND",
    "UNKNOWN_MIN_ISR",
    "Action",
    "BrokerState",
    "Columns",
    "Rate",
    "RateSource",
    "Scenario",
    "ScenarioError",
    "Snapshot",
    "WhatIfDocument",
    "drain_brokers",
    "lose_brokers",
    "lose_rack",
    "remove_brokers",
    "snapshot_of",
    "what_if",
]
