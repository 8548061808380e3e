"""Plain twin of the planner for several resources: one best change after another, on lists.

Same ranges, same rule for valid moves, and no load may get worse than its range allows. Where the planner moves thousands of
replicas at once and levels one resource after another, this evaluates every broker for every replica and makes the best change.
Without budgets, steps, messages and the goal of few bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from move_planner.plan_state import initial_state
from move_planner.ranges import ranges_of
from move_planner.request import MeasuredRequest

Change = tuple[int, int, int]
"""Row, slot, broker number; for a leadership move the broker that already has the slot."""


@dataclass(slots=True)
class PlainState:
    """As `plan_state.PlanState` and `ranges.Ranges`, without padding; `each`, `led` and the ends of ranges by resource."""

    replicas: list[list[int]]
    replica_load: list[list[int]]
    leader_load: list[list[int]]
    takers: list[int]
    fixed: list[int]
    free: list[bool]
    rack: list[int]
    racks: int
    target: list[list[float]]
    lower: list[list[int]]
    upper: list[list[int]]
    capacity: list[list[int]]

    def broker_load(self, number: int, broker: int) -> int:
        """Sum up what a broker has of a resource."""
        rows = [row for row, replicas in enumerate(self.replicas) if broker in replicas]
        return sum(
            self.replica_load[number][row] + (self.leader_load[number][row] if self.replicas[row][0] == broker else 0)
            for row in rows
        )

    def fits(self, row: int, slot: int, broker: int) -> bool:
        """Return whether a broker may take over a slot."""
        replicas = self.replicas[row]
        if broker in replicas or broker not in self.takers or not self.free[row] or replicas[slot] in self.fixed:
            return False
        staying = {*self.takers, *self.fixed}
        others = {self.rack[other] for place, other in enumerate(replicas) if place != slot and other in staying} - {-1}
        return not self.racks or self.rack[broker] not in others or len(others) == self.racks

    def apart(self) -> list[tuple[float, float, bool]]:
        """Return over, under and whether a capacity is exceeded, by resource and broker that takes part, in parts of the target."""
        found = []
        for number in range(len(self.replica_load)):
            for broker in self.takers:
                held, scale = self.broker_load(number, broker), max(1.0, self.target[number][broker])
                over = max(0, held - self.upper[number][broker]) / scale
                under = max(0, self.lower[number][broker] - held) / scale
                found.append((over, under, held > self.capacity[number][broker]))
        return found

    def changed(self, change: Change) -> list[int]:
        """Make a change and return what the row was."""
        row, slot, broker = change
        was = list(self.replicas[row])
        if self.replicas[row][slot] == broker:
            self.replicas[row][0], self.replicas[row][slot] = broker, was[0]
        else:
            self.replicas[row][slot] = broker
        return was


def plan_plain(request: MeasuredRequest) -> list[list[int]]:
    """Return each partition's new replicas, by id and by row."""
    state = initial_state(request)
    ranges = ranges_of(state, request)
    table = state.table
    plain = PlainState(
        replicas=[[number for number in row if number != table.no_broker] for row in table.replicas.tolist()],
        replica_load=state.replica_load.tolist(),
        leader_load=state.leader_load.tolist(),
        takers=[number for number in range(table.no_broker) if state.open_to[number]],
        fixed=[number for number in range(table.no_broker) if state.fixed[number]],
        free=state.free.tolist(),
        rack=table.rack.tolist(),
        racks=table.racks,
        target=ranges.target.tolist(),
        lower=ranges.lower.tolist(),
        upper=ranges.upper.tolist(),
        capacity=ranges.capacity.tolist(),
    )
    for change in required_moves(plain):
        place(plain, *change)
    while (best := best_change(plain)) is not None:
        plain.changed(best)
    return [[int(table.ids[number]) for number in row] for row in plain.replicas]


def required_moves(plain: PlainState) -> Iterator[tuple[int, int]]:
    """Yield the replicas that must move: those on brokers that leave, then second ones in a rack."""
    staying = {*plain.takers, *plain.fixed}
    for row, replicas in enumerate(plain.replicas):
        yield from ((row, slot) for slot, broker in enumerate(replicas) if broker not in staying)
    for row, replicas in enumerate(plain.replicas):
        for slot in range(len(replicas) - 1, 0, -1):
            racks = [plain.rack[broker] for broker in replicas if broker in staying]
            if plain.racks and plain.rack[replicas[slot]] in racks[:slot] and len(set(racks)) < plain.racks:
                yield row, slot


def place(plain: PlainState, row: int, slot: int) -> None:
    """Give a slot to the broker with the best outcome among those that fit and stay within their capacities."""
    outcomes = []
    for broker in plain.takers:
        if plain.fits(row, slot, broker):
            was = plain.changed((row, slot, broker))
            outcomes.append(
                (any(full for _, _, full in plain.apart()), sum(a + b for a, b, _ in plain.apart()), broker)
            )
            plain.replicas[row] = was
    if outcomes and not min(outcomes)[0]:
        plain.replicas[row][slot] = min(outcomes)[2]


def best_change(plain: PlainState) -> Change | None:
    """Return the change that brings brokers nearest to their ranges and makes nothing worse; leadership moves are tried first."""
    now = plain.apart()
    for candidates in (_leaders(plain), _moves(plain)):
        found = []
        for change in candidates:
            was = plain.changed(change)
            then = plain.apart()
            plain.replicas[change[0]] = was
            if all(a <= b and c <= d for (a, c, _), (b, d, _) in zip(then, now, strict=True)):
                gain = sum(a + b for a, b, _ in now) - sum(a + b for a, b, _ in then)
                found.append((-gain, change))
        if found and min(found)[0] < -1e-9:
            return min(found)[1]
    return None


def _leaders(plain: PlainState) -> Iterator[Change]:
    for row, replicas in enumerate(plain.replicas):
        if plain.free[row] and replicas and replicas[0] in plain.takers:
            yield from ((row, slot, broker) for slot, broker in enumerate(replicas) if slot and broker in plain.takers)


def _moves(plain: PlainState) -> Iterator[Change]:
    for row, replicas in enumerate(plain.replicas):
        for slot, giver in enumerate(replicas):
            if giver in plain.takers:
                yield from ((row, slot, broker) for broker in plain.takers if plain.fits(row, slot, broker))
