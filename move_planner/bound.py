"""Lower bound of the bytes that any plan must copy.

Four floors; the highest one is the bound. None of them charges for leadership, which is assumed to be wherever it helps.
1. Leaving. A broker that is above its range in a resource even without any leadership must lose replicas with that surplus. The
   fewest bytes for it are its replicas with the most of the resource per byte, the last one in part (a fractional knapsack). Of
   several resources the most expensive one counts. A drained broker loses everything that may move. A copied replica leaves one
   broker, so these add up over brokers; replicas that a larger replication factor adds are copied in addition, dropped ones are not.
2. Arriving. The same for brokers that are below their range even if they led all their partitions: each takes the best replicas
   of the whole cluster. A copied replica arrives at one broker, so these add up as well.
3. Arriving together. The total lack of one resource comes from one cluster: each replica in it can arrive once.
4. Racks. Second replicas in a rack where another rack has none.

Real plans are above the bound: replicas are whole, they must fit where they go, and a move for one resource may disturb another.
"""

import numpy as np
import numpy.typing as npt

from move_planner.grouping import sums_by_group
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

Floats = npt.NDArray[np.float64]


def lower_bound_bytes(state: PlanState, ranges: Ranges, *, level: bool, racks: bool) -> int:
    """Return the fewest bytes that bring the current state into the ranges.

    Without `level` brokers need not be within their ranges, without `racks` second replicas in a rack may stay.
    """
    table = state.table
    rows, slots = np.nonzero((table.replicas != state.no_broker) & state.free[:, None])
    holders = table.replicas[rows, slots]
    drained = np.where(table.stays[:-1], 0, np.bincount(holders, state.bytes[rows], state.no_broker + 1)[:-1])
    least, most = _whatever_is_led(state)
    surplus = np.where(state.open_to, np.maximum(0, least - ranges.upper), 0)
    lack = np.where(state.open_to, np.maximum(0, ranges.lower - most), 0)
    leaving = np.max([_leaving(state, number, rows, holders, surplus[number]) for number in range(len(lack))], axis=0)
    arriving = np.max([_arriving(state, number, lack[number]) for number in range(len(lack))], axis=0)
    together = max(_arriving_together(state, number, int(lack[number].sum())) for number in range(len(lack)))
    grown = float((state.bytes * (state.factors - table.factors())).sum())
    floors = [float(drained.sum()) + grown]
    if level:
        floors = [floors[0] + float(leaving.sum()), float(arriving.sum()), together]
    if racks:
        floors.append(float(_doubled(state)))
    # Bytes are whole numbers, so the integer part is a bound as well: this covers floats that are rounded up. The small addend
    # covers whole floors that are rounded down.
    return int(max(0.0, *floors) + 1e-6)


def _whatever_is_led(state: PlanState) -> tuple[LoadArray, LoadArray]:
    """Return the least and the most that brokers can have with the current replicas, over all possible leaders."""
    replicas, fixed = state.table.replicas, ~state.free
    least, most = np.zeros_like(state.broker_load), np.zeros_like(state.broker_load)
    for number, (load, led) in enumerate(zip(state.replica_load, state.leader_load, strict=True)):
        for slot in range(replicas.shape[1]):
            now = led if slot == 0 else np.zeros_like(led)
            np.add.at(least[number], replicas[:, slot], load + np.where(fixed, now, 0))
            np.add.at(most[number], replicas[:, slot], load + np.where(fixed, now, led))
    return least, most


def _leaving(state: PlanState, number: int, rows: Rows, holders: Rows, surplus: LoadArray) -> Floats:
    """Return the fewest bytes that take a surplus of one resource off each broker."""
    found = np.zeros(state.no_broker + 1)
    if not surplus.any():
        return found
    chosen = np.flatnonzero((surplus[holders] > 0) & (state.replica_load[number, rows] > 0))
    load, size, holder = state.replica_load[number, rows[chosen]], state.bytes[rows[chosen]], holders[chosen]
    order = np.lexsort((size / load, holder))
    load, size, holder = load[order], size[order], holder[order]
    preceding = sums_by_group(holder, load) - load
    part = np.clip((surplus[holder] - preceding) / load, 0, 1)
    np.add.at(found, holder, part * size)
    return found


def _arriving(state: PlanState, number: int, lack: LoadArray) -> Floats:
    """Return the fewest bytes that bring each broker what it lacks, as if it could take every partition."""
    if not lack.any():
        return np.zeros(len(lack))
    loads, sizes = _best_first(state, number, copies=False)
    along, weight = np.append(0, np.cumsum(loads)), np.append(0, np.cumsum(sizes, dtype=np.float64))
    found: Floats = np.interp(lack, along, weight)
    return found


def _arriving_together(state: PlanState, number: int, lack: int) -> float:
    if not lack:
        return 0.0
    loads, sizes = _best_first(state, number, copies=True)
    along, weight = np.append(0, np.cumsum(loads)), np.append(0, np.cumsum(sizes, dtype=np.float64))
    return float(np.interp(lack, along, weight))


def _best_first(state: PlanState, number: int, *, copies: bool) -> tuple[LoadArray, LoadArray]:
    """Return load and bytes of partitions that may move, those with the most load per byte first.

    With `copies`, of all their replicas; one of these leads.
    """
    rows = np.flatnonzero(state.free & (state.replica_load[number] + state.leader_load[number] > 0))
    load, size = state.replica_load[number, rows] + state.leader_load[number, rows], state.bytes[rows]
    if copies:
        factors = state.table.factors()[rows]
        followers = np.flatnonzero((factors > 1) & (state.replica_load[number, rows] > 0))
        load = np.concatenate([load, state.replica_load[number, rows[followers]] * (factors[followers] - 1)])
        size = np.concatenate([size, size[followers] * (factors[followers] - 1)])
    order = np.argsort(size / load, kind="stable")
    return load[order], size[order]


def _doubled(state: PlanState) -> int:
    table = state.table
    if not table.racks:
        return 0
    missing = np.maximum(0, np.minimum(table.racks, state.factors) - table.racks_of(table.replicas))
    return int((state.bytes * missing)[state.free].sum())
