"""Plain twin of the planner for measured loads: one best change after another, over lists.

Ranges, the rule for possible changes, and the rule that no change worsens a resource beyond its range are the same. Where the planner
moves thousands of replicas at once and lets one resource wait for another, this twin checks every broker for every replica and makes the
best change. Budgets, steps, messages and the minimisation of moved bytes are omitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from move_planner.books import books_of
from move_planner.ranges import ranges_of
from move_planner.request import MeasuredRequest

Change = tuple[int, int, int]
"""Row, slot, broker number; the broker that has the slot already when it is to lead."""


@dataclass(slots=True)
class PlainBooks:
    """As `books.Books` and `ranges.Ranges`, without padding; `each`, `led` and the ends of ranges by resource."""

    replicas: list[list[int]]
    each: list[list[int]]
    led: list[list[int]]
    takers: list[int]
    fixed: list[int]
    free: list[bool]
    rack: list[int]
    racks: int
    target: list[list[float]]
    lower: list[list[int]]
    upper: list[list[int]]
    capacity: list[list[int]]

    def held(self, number: int, broker: int) -> int:
        """Sum up what a broker has of a resource."""
        rows = [row for row, replicas in enumerate(self.replicas) if broker in replicas]
        return sum(
            self.each[number][row] + (self.led[number][row] if self.replicas[row][0] == broker else 0) for row in rows
        )

    def fits(self, row: int, slot: int, broker: int) -> bool:
        """Whether a broker may take a slot."""
        replicas = self.replicas[row]
        if broker in replicas or broker not in self.takers or not self.free[row] or replicas[slot] in self.fixed:
            return False
        staying = {*self.takers, *self.fixed}
        others = {self.rack[other] for place, other in enumerate(replicas) if place != slot and other in staying} - {-1}
        return not self.racks or self.rack[broker] not in others or len(others) == self.racks

    def apart(self) -> list[tuple[float, float, bool]]:
        """Return over, under and whether a capacity is exceeded, by resource and broker that takes part, in parts of the target."""
        found = []
        for number in range(len(self.each)):
            for broker in self.takers:
                held, scale = self.held(number, broker), max(1.0, self.target[number][broker])
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
    books = books_of(request)
    ranges = ranges_of(books, request)
    table = books.table
    plain = PlainBooks(
        replicas=[[number for number in row if number != table.nobody] for row in table.replicas.tolist()],
        each=books.each.tolist(),
        led=books.led.tolist(),
        takers=[number for number in range(table.nobody) if books.open_to[number]],
        fixed=[number for number in range(table.nobody) if books.fixed[number]],
        free=books.free.tolist(),
        rack=table.rack.tolist(),
        racks=table.racks,
        target=ranges.target.tolist(),
        lower=ranges.lower.tolist(),
        upper=ranges.upper.tolist(),
        capacity=ranges.capacity.tolist(),
    )
    for change in forced(plain):
        place(plain, *change)
    while (best := best_change(plain)) is not None:
        plain.changed(best)
    return [[int(table.ids[number]) for number in row] for row in plain.replicas]


def forced(plain: PlainBooks) -> Iterator[tuple[int, int]]:
    """Yield what has to move: replicas on brokers that leave, then second ones in a rack."""
    staying = {*plain.takers, *plain.fixed}
    for row, replicas in enumerate(plain.replicas):
        yield from ((row, slot) for slot, broker in enumerate(replicas) if broker not in staying)
    for row, replicas in enumerate(plain.replicas):
        for slot in range(len(replicas) - 1, 0, -1):
            racks = [plain.rack[broker] for broker in replicas if broker in staying]
            if plain.racks and plain.rack[replicas[slot]] in racks[:slot] and len(set(racks)) < plain.racks:
                yield row, slot


def place(plain: PlainBooks, row: int, slot: int) -> None:
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


def best_change(plain: PlainBooks) -> Change | None:
    """Return the change that brings brokers nearest to their ranges and worsens none; changes of only leaders come first."""
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


def _leaders(plain: PlainBooks) -> Iterator[Change]:
    for row, replicas in enumerate(plain.replicas):
        if plain.free[row] and replicas and replicas[0] in plain.takers:
            yield from ((row, slot, broker) for slot, broker in enumerate(replicas) if slot and broker in plain.takers)


def _moves(plain: PlainBooks) -> Iterator[Change]:
    for row, replicas in enumerate(plain.replicas):
        for slot, giver in enumerate(replicas):
            if giver in plain.takers:
                yield from ((row, slot, broker) for broker in plain.takers if plain.fits(row, slot, broker))
