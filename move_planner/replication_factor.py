"""Selection of replicas to drop for a smaller replication factor.

First replicas on brokers that leave, then second ones in a rack, then those on the fullest brokers; among equals the preferred
leader last. Rows are processed in shares, so that the broker that is fullest at first does not lose all of them. The module
required_moves places the replicas that a larger factor adds.
"""

import numpy as np
import numpy.typing as npt

from move_planner.plan_state import PlanState, broker_loads
from move_planner.ranges import Ranges
from move_planner.table import Rows, Table, doubled

SHARES = 64
"""Shares of the rows; how full brokers are is computed again for each share."""

LEAVING_SCORE, SECOND_IN_RACK_SCORE, FOLLOWER_SCORE = 1e9, 1e6, 1e-6
"""Scores of a replica to drop, added to how full its broker is (held / target, far below a million)."""


def drop_replicas(state: PlanState, ranges: Ranges, factor: int) -> None:
    """Drop replicas until no partition that may change has more than `factor`."""
    table = state.table
    for _ in range(table.replicas.shape[1]):
        rows = np.flatnonzero(state.free & (table.factors() > factor))
        if not rows.size:
            break
        for share in np.array_split(rows, min(SHARES, len(rows))):
            slots = _to_drop(state, ranges, share)
            state.move(share, slots, np.full(len(share), table.no_broker))
        close_up(table)
        # The leader may be another replica now.
        state.broker_load = broker_loads(table.replicas, state.replica_load, state.leader_load, state.no_broker)
    state.recount()


def _to_drop(state: PlanState, ranges: Ranges, rows: Rows) -> Rows:
    table = state.table
    replicas = table.replicas[rows]
    score: npt.NDArray[np.float64] = (state.broker_load / np.maximum(ranges.target, 1)).max(axis=0)[replicas]
    score = np.where(table.stays[replicas], score, LEAVING_SCORE) + doubled(table, replicas) * SECOND_IN_RACK_SCORE
    score[:, 1:] += FOLLOWER_SCORE
    score[replicas == table.no_broker] = -1
    chosen: Rows = score.argmax(axis=1)
    return chosen


def close_up(table: Table) -> None:
    """Move empty slots to the right."""
    order = np.argsort(table.replicas == table.no_broker, axis=1, kind="stable")
    table.replicas = np.take_along_axis(table.replicas, order, axis=1)
