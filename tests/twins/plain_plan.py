"""Plain twin of the planner: one best move after another, over lists.

Phases, ranges and the rule for possible moves are the same. Where the planner proposes one broker to each of thousands of replicas, this
twin checks every broker for every replica. Budgets, steps, leaders and messages are omitted.
"""

from dataclasses import dataclass

from move_planner import PlanRequest
from move_planner.books import books_of
from move_planner.ranges import ranges_of

Move = tuple[int, int, int]
"""Row, slot, broker number."""


@dataclass(slots=True)
class PlainTable:
    """As `table.Table`, without padding: `replicas` are lists of broker numbers, `rack` -1 where there is none."""

    replicas: list[list[int]]
    load: list[int]
    staying: list[int]
    rack: list[int]
    racks: int
    target: list[float]
    lower: list[int]
    upper: list[int]

    def held(self, broker: int) -> int:
        """Sum up what a broker holds."""
        return sum(load for load, replicas in zip(self.load, self.replicas, strict=True) if broker in replicas)

    def fits(self, row: int, slot: int, broker: int) -> bool:
        """Whether a broker may take a slot."""
        others = [other for place, other in enumerate(self.replicas[row]) if place != slot]
        taken = {self.rack[other] for other in others if other in self.staying}
        if broker in self.replicas[row] or broker not in self.staying:
            return False
        return not self.racks or self.rack[broker] not in taken or len(taken) == self.racks

    def outside(self, broker: int, added: int = 0) -> int:
        """Return how far a broker is outside its range after adding some load."""
        held = self.held(broker) + added
        return max(0, held - self.upper[broker]) + max(0, self.lower[broker] - held)


def plan_plain(request: PlanRequest) -> list[list[int]]:
    """Return each partition's new replicas, by id and by row; leaders are not evened."""
    books = books_of(request.measured())
    ranges = ranges_of(books, request.measured())
    table = books.table
    plain = PlainTable(
        replicas=[[number for number in row if number != table.nobody] for row in table.replicas.tolist()],
        load=books.bytes.tolist(),
        staying=[number for number in range(table.nobody) if table.stays[number]],
        rack=table.rack.tolist(),
        racks=table.racks,
        target=ranges.target[0].tolist(),
        lower=ranges.lower[0].tolist(),
        upper=ranges.upper[0].tolist(),
    )
    if plain.staying:
        if request.replication_factor is not None:
            drop(plain, request.replication_factor)
        place_all(plain, books.factors.tolist())
        while (move := best_move(plain)) is not None:
            row, slot, broker = move
            plain.replicas[row][slot] = broker
    return [[int(table.ids[number]) for number in row] for row in plain.replicas]


def drop(plain: PlainTable, factor: int) -> None:
    """Drop replicas: on brokers that leave, then second ones in a rack, then on the fullest broker; the first one last."""
    for row in plain.replicas:
        while len(row) > factor:
            racks = [plain.rack[broker] for broker in row]

            def worth(slot: int, row: list[int] = row, racks: list[int] = racks) -> tuple[bool, bool, float]:
                second = racks[slot] >= 0 and racks[slot] in racks[:slot]
                return (
                    row[slot] not in plain.staying,
                    second,
                    plain.held(row[slot]) - plain.target[row[slot]] + (slot > 0),
                )

            del row[max(range(len(row)), key=worth)]


def place_all(plain: PlainTable, factors: list[int]) -> None:
    """Place what must move or be added, on the emptiest broker that fits; another rack first."""
    for row, replicas in enumerate(plain.replicas):
        for slot in [place for place, broker in enumerate(replicas) if broker not in plain.staying]:
            take(plain, row, slot, plain.racks)
        while len(replicas) < factors[row]:
            replicas.append(-1)
            take(plain, row, len(replicas) - 1, plain.racks)
        for slot in range(len(replicas) - 1, 0, -1):
            earlier = [plain.rack[broker] for broker in replicas[:slot] if broker in plain.staying]
            if plain.racks and replicas[slot] in plain.staying and plain.rack[replicas[slot]] in earlier:
                others = {plain.rack[broker] for broker in replicas if broker in plain.staying}
                if len(others) < plain.racks:
                    take(plain, row, slot, 0)


def take(plain: PlainTable, row: int, slot: int, last_resort: int) -> None:
    """Give a slot to the emptiest broker that fits; with a last resort, to any that is new to the partition."""
    fitting = [broker for broker in plain.staying if plain.fits(row, slot, broker)]
    if not fitting and last_resort:
        fitting = [broker for broker in plain.staying if broker not in plain.replicas[row]]
    if fitting:
        plain.replicas[row][slot] = min(fitting, key=lambda broker: plain.held(broker) - plain.target[broker])


def best_move(plain: PlainTable) -> Move | None:
    """Return the move that brings brokers nearest to their ranges, of equals the smallest; None when none helps."""
    found: list[tuple[int, int, Move]] = []
    for row, replicas in enumerate(plain.replicas):
        load = plain.load[row]
        for slot, giver in enumerate(replicas):
            for taker in plain.staying if giver in plain.staying else ():
                now = plain.outside(giver) + plain.outside(taker)
                gain = now - plain.outside(giver, -load) - plain.outside(taker, load)
                if gain > 0 and plain.fits(row, slot, taker):
                    found.append((-gain, load, (row, slot, taker)))
    return min(found)[2] if found else None
