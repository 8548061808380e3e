"""Where a topic's replicas go: Kafka's own formula, with and without racks, for many partitions at once.

Goals: leaders and replicas spread evenly over brokers; the followers of one broker's leaders spread over the others; where
brokers have racks, replicas of a partition in different racks. The same answer as Kafka's tools give for the same numbers
drawn, so that a topic made through us looks like one made by a broker.
Constraints: nothing is drawn here. Start index and replica shift come in (Kafka draws each below the number of brokers).

Algorithm. Brokers stand in a circle of n: in the order given, or, with racks, one of each rack in turn. Partition p has its
first replica at place (start + p) mod n. Its followers are found by walking on from there, the first step being
1 + shift mod (n - 1), later ones 1 longer, and never landing on the first replica. Each time p passes a multiple of n the
shift grows by one (times the number of racks, with racks). With racks, places are passed over while their rack has a replica
and another rack has none, and then while the broker has one.

So partitions come in blocks of n that differ in their shift alone, and shifts repeat after n - 1. Each block that occurs is
made once, all of its rows together, and a million partitions are copies of at most n - 1 blocks. Its plain
twin, one partition after another, is `tests/twins/placement.py`.

Worked example: 20 brokers, replication factor 10, numbers drawn 19 and 0 (protocol notes, Z66).

>>> placed = place_replicas(dict.fromkeys(range(20)), 20, 10, start_index=19, replica_shift=0)
>>> for replicas in placed[[0, 1, 11, 19]].tolist():
...     print(replicas)
[19, 0, 1, 2, 3, 4, 5, 6, 7, 8]
[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
[10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
[18, 19, 0, 1, 2, 3, 4, 5, 6, 7]

It leaves out loads and moves. Source: Kafka's AdminUtils.assignReplicasToBrokers and, for added
partitions, AdminZkClient.createNewPartitionsAssignment. Invariants C3 and C11.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import IntArray

Positions = npt.NDArray[np.intp]
"""Numbers of places in the circle, or of racks."""

Racks = Mapping[int, str | None]
"""Broker ids, in Kafka's order (by id), with their racks; None for a broker without one."""

MAX_PARTITIONS = 10_000_000
"""Partitions placed in one call: five times what the largest known clusters hold, 120 MB at replication factor 3."""


class PlacementError(ValueError):
    """No placement is possible; the text is Kafka's and `code` the name of Kafka's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def place_replicas(
    brokers: Racks,
    partitions: int,
    replication_factor: int,
    start_index: int,
    replica_shift: int,
    *,
    start_partition_id: int = 0,
) -> IntArray:
    """Place partitions start_partition_id, start_partition_id + 1, ...: int32 of shape (partitions, replication_factor).

    Start index and replica shift are any numbers from 0. Raises PlacementError.
    """
    check_placement(brokers, partitions, replication_factor)
    assert min(start_index, replica_shift, start_partition_id) >= 0, "Kafka's numbers for placement are never negative"
    circle = alternate_racks(brokers) if has_racks(brokers) else list(brokers)
    places = len(circle)
    shifts_apart = max(1, places - 1)
    first_block, last_block = start_partition_id // places, (start_partition_id + partitions - 1) // places
    # The shift grows where a multiple of n is passed; a first partition that is one (but for 0) has passed it.
    passed = np.arange(first_block, last_block + 1, dtype=np.int64) - max(0, start_partition_id - 1) // places
    rack_numbers = number_racks([brokers[broker] for broker in circle])
    step = max(rack_numbers) + 1 if has_racks(brokers) else 1
    shifts = (replica_shift % shifts_apart + passed) * step % shifts_apart
    occurring, block_of = np.unique(shifts, return_inverse=True)
    leaders = (np.arange(places) + start_index % places) % places
    if has_racks(brokers):
        blocks = rack_aware_blocks(leaders, occurring, np.array(rack_numbers), replication_factor)
    else:
        blocks = rack_unaware_blocks(leaders, occurring, replication_factor)
    placed = np.array(circle, dtype=np.int32)[blocks].take(block_of, axis=0).reshape(-1, replication_factor)
    skipped = start_partition_id - first_block * places
    asked: IntArray = placed[skipped : skipped + partitions]
    return asked


def place_added(
    brokers: Racks, first_replicas: Sequence[int], present: int, added: int, replica_shift: int | None = None
) -> IntArray:
    """Place partitions added to a topic of `present` partitions, whose partition 0 has these replicas.

    Kafka goes on from where that partition's first replica stands among the brokers by id (or the next higher id, or else
    the first broker), and takes the same number for the shift; so does None. Raises PlacementError.
    """
    start_index = fixed_start_index(brokers, first_replicas[0])
    shift = start_index if replica_shift is None else replica_shift
    return place_replicas(brokers, added, len(first_replicas), start_index, shift, start_partition_id=present)


def fixed_start_index(brokers: Racks, first_replica: int) -> int:
    """Return the start index that continues a topic whose partition 0 has this first replica.

    >>> fixed_start_index({1: None, 3: None, 5: None}, 4)
    2
    """
    return next((index for index, broker in enumerate(sorted(brokers)) if broker >= first_replica), 0)


def check_placement(brokers: Racks, partitions: int, replication_factor: int) -> None:
    """Raise PlacementError, in Kafka's words and order, where there is no placement."""
    if partitions <= 0:
        raise PlacementError("INVALID_PARTITIONS", "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise PlacementError("INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        words = f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        raise PlacementError("INVALID_REPLICATION_FACTOR", words)
    if has_racks(brokers) and None in brokers.values():
        words = "Not all brokers have rack information for replica rack aware assignment."
        raise PlacementError("UNKNOWN_SERVER_ERROR", words)
    if partitions > MAX_PARTITIONS:
        words = f"Cannot place {partitions} partitions at once: ask for at most {MAX_PARTITIONS}."
        raise PlacementError("INVALID_PARTITIONS", words)


def has_racks(brokers: Racks) -> bool:
    """Tell whether any broker has a rack: then placement is rack-aware."""
    return any(rack is not None for rack in brokers.values())


def alternate_racks(brokers: Racks) -> list[int]:
    """Order brokers so that racks take turns: racks by name, brokers of a rack by id.

    >>> alternate_racks({0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"})
    [0, 3, 1, 5, 4, 2]
    """
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(brokers[broker] or "", []).append(broker)
    # Java compares strings by UTF-16 units, which are in the order of their big-endian bytes.
    queues = [by_rack[rack] for rack in sorted(by_rack, key=lambda rack: rack.encode("utf-16-be", "surrogatepass"))]
    turns = max(map(len, queues))
    return [queue[turn] for turn in range(turns) for queue in queues if turn < len(queue)]


def number_racks(racks: Sequence[str | None]) -> list[int]:
    """Give racks numbers in order of first appearance."""
    numbers: dict[str | None, int] = {}
    return [numbers.setdefault(rack, len(numbers)) for rack in racks]


def rack_unaware_blocks(leaders: Positions, shifts: Positions, replication_factor: int) -> Positions:
    """Make one block of places for each shift: shape (shifts, places, replication factor)."""
    places = len(leaders)
    steps = 1 + (shifts[:, None] + np.arange(replication_factor - 1)) % max(1, places - 1)
    blocks = np.empty((len(shifts), places, replication_factor), dtype=np.intp)
    blocks[:, :, 0] = leaders
    blocks[:, :, 1:] = (leaders[None, :, None] + steps[:, None, :]) % places
    return blocks


def rack_aware_blocks(leaders: Positions, shifts: Positions, racks: Positions, replication_factor: int) -> Positions:
    """Make one block of places for each shift, passing over places as racks demand; racks are numbers by place.

    All rows walk together, one step at a time; those that have all their replicas drop out. Each of the two kinds of passing
    over ends within one round, so nobody walks more than two.
    """
    places, rack_count = len(leaders), int(racks.max()) + 1
    chosen = np.full((len(shifts) * places, replication_factor), -1, dtype=np.intp)
    chosen[:, 0] = np.tile(leaders, len(shifts))
    shift = np.repeat(shifts, places)
    count = np.ones(len(chosen), dtype=np.intp)
    walking = np.flatnonzero(count < replication_factor)
    for step in range(2 * places):
        if not walking.size:
            break
        so_far = chosen[walking]
        place = (so_far[:, 0] + 1 + (shift[walking] + step) % (places - 1)) % places
        # Positions not chosen yet are -1: they stand for no place and no rack.
        same_place = (so_far == place[:, None]).any(axis=1)
        same_rack = ((racks[so_far] == racks[place][:, None]) & (so_far >= 0)).any(axis=1)
        fits = np.where(count[walking] < rack_count, ~same_rack, ~same_place)
        takers = walking[fits]
        chosen[takers, count[takers]] = place[fits]
        count[takers] += 1
        walking = walking[count[walking] < replication_factor]
    assert not walking.size, "every row finds its replicas within two rounds"
    return chosen.reshape(len(shifts), places, replication_factor)
