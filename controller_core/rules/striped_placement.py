"""Replica placement of KRaft mode: stripes over racks, and brokers that are fenced only where there are no others.

Goals, the first ones first: replicas of a partition are in different racks; partitions use all brokers equally; few replicas are on fenced
brokers. Constraints: a broker has one replica of a partition at most, and the first replica, the leader, is on an unfenced broker.

Algorithm. Racks form a circle, and each partition starts one rack later than the one before it. A rack gives its unfenced brokers in turn,
starting one broker later for each partition, and then its fenced ones. After as many partitions as there are unfenced brokers, racks and
brokers are shuffled, so that stripes do not repeat.

Worked example: the racks a, b, c of three brokers each, and the seed 3.

>>> brokers = [StripedBroker(number, "abc"[number // 3]) for number in range(9)]
>>> place_striped(brokers, 3, 3, seed=3).tolist()
[[5, 6, 2], [7, 0, 3], [1, 4, 8]]

Source: StripedReplicaPlacer of Kafka 4.3, with java.util.Random of the same seed. Kafka draws the first broker of each rack in the order of a
hash table, here it is the order of the racks: with several racks, equal seeds may start at other brokers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from controller_core.model import IntArray
from controller_core.rules.java_random import JavaRandom
from controller_core.rules.placement import MAX_PARTITIONS, PlacementError


@dataclass(frozen=True, slots=True)
class StripedBroker:
    """A broker that may get replicas."""

    id: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(slots=True)
class _Turns:
    """Brokers of a rack, given in turn."""

    brokers: list[int] = field(default_factory=list)
    given: int = 0
    offset: int = 0
    round: int = 0

    def start(self, random: JavaRandom) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = random.below(len(self.brokers))

    def next(self, of_round: int) -> int | None:
        """Return the next broker for a partition's round; None if all were given."""
        if not self.brokers:
            return None
        if self.round != of_round:
            self.round, self.given = of_round, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.given >= len(self.brokers):
            return None
        broker = self.brokers[(self.given + self.offset) % len(self.brokers)]
        self.given += 1
        return broker


@dataclass(slots=True)
class _Rack:
    name: str | None
    unfenced: _Turns = field(default_factory=_Turns)
    fenced: _Turns = field(default_factory=_Turns)

    def next(self, of_round: int) -> int | None:
        broker = self.unfenced.next(of_round)
        return self.fenced.next(of_round) if broker is None else broker


def place_striped(brokers: Iterable[StripedBroker], partitions: int, replication_factor: int, *, seed: int) -> IntArray:
    """Place partitions: int32 of shape (partitions, replication_factor). Raises PlacementError."""
    usable = list(brokers)
    _check(usable, partitions, replication_factor)
    random = JavaRandom(seed)
    circle = _Circle(usable, random)
    return np.array([circle.place(replication_factor) for _ in range(partitions)], dtype=np.int32)


def _check(usable: list[StripedBroker], partitions: int, replication_factor: int) -> None:
    if not 0 < partitions <= MAX_PARTITIONS:
        message = f"Cannot place {partitions} partitions at once: request from 1 to {MAX_PARTITIONS}."
        raise PlacementError("INVALID_PARTITIONS", message)
    message = ""
    if replication_factor <= 0:
        message = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif all(broker.is_fenced for broker in usable):
        message = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > len(usable):
        message = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} broker(s) are registered "
            "or some brokers have all their log directories cordoned."
        )
    if message:
        raise PlacementError("INVALID_REPLICATION_FACTOR", message)


class _Circle:
    """The racks, and the state of placement between partitions."""

    def __init__(self, usable: list[StripedBroker], random: JavaRandom) -> None:
        by_name: dict[str | None, _Rack] = {}
        for broker in usable:
            rack = by_name.setdefault(broker.rack, _Rack(broker.rack))
            (rack.fenced if broker.is_fenced else rack.unfenced).brokers.append(broker.id)
        # Java compares strings by UTF-16 units; their big-endian bytes have the same order. Brokers without a rack come first.
        self._racks = sorted(
            by_name.values(),
            key=lambda rack: (rack.name is not None, (rack.name or "").encode("utf-16-be", "surrogatepass")),
        )
        for rack in self._racks:
            rack.fenced.start(random)
            rack.unfenced.start(random)
        self._by_name = tuple(self._racks)
        self._random = random
        self._unfenced = sum(not broker.is_fenced for broker in usable)
        self._round = 0
        self._first_rack = random.below(len(self._racks))

    def place(self, replication_factor: int) -> list[int]:
        """Return the replicas of the next partition."""
        if self._round == self._unfenced and self._unfenced > 1:
            self._shuffle()
        start = self._first_rack % len(self._racks)
        order = [*self._racks[start:], *self._racks[:start]]
        replicas: list[int] = []
        # The leader's rack is passed over once, so that the next replica comes from another rack.
        rack_of_leader: int | None = 0
        while not replicas:
            assert rack_of_leader is not None
            if (leader := order[rack_of_leader].unfenced.next(self._round)) is not None:
                replicas.append(leader)
            else:
                rack_of_leader = (rack_of_leader + 1) % len(order)
        position = 0
        while len(replicas) < replication_factor:
            if position == rack_of_leader:
                rack_of_leader = None
            elif (replica := order[position].next(self._round)) is not None:
                replicas.append(replica)
            position = (position + 1) % len(order)
        self._round += 1
        self._first_rack = start + 1
        return replicas

    def _shuffle(self) -> None:
        # Kafka keeps the racks in a hash table and shuffles only their names, then the brokers in the table's order.
        self._random.shuffle(self._racks)
        for rack in self._by_name:
            self._random.shuffle(rack.fenced.brokers)
            self._random.shuffle(rack.unfenced.brokers)
        self._round = 0
