"""Replica placement with Kafka's formula, with and without racks, for many partitions at once.

Goals: leaders and replicas are spread evenly over brokers; the followers of one broker's leaders are spread over the others; if
brokers have racks, replicas of a partition are in different racks. The result is that of Kafka's tools for the same random numbers.
Constraints: no random numbers are generated here. Start index and replica shift are arguments (Kafka generates each below the number
of brokers).

Algorithm. The n brokers form a circle: in the order given or, with racks, alternating between racks. Partition p has its
first replica at position (start + p) mod n. The positions of its followers are found by steps from there; the first step is
1 + shift mod (n - 1), each later one is longer by 1, and the first replica is never reached again. When p exceeds a multiple of n, the
shift grows by one (with racks: by the number of racks). With racks, a position is skipped while its rack has a replica
and another rack has none, and afterwards while its broker has a replica.

Partitions thus form blocks of n that differ only in their shift, and shifts repeat after n - 1. Each distinct block is computed once,
all its rows together, and a million partitions are copies of at most n - 1 blocks. The plain
twin, one partition after another, is `tests/twins/placement.py`.

Worked example: 20 brokers, replication factor 10, start index 19, replica shift 0 (protocol notes, Z66).

>>> placed = place_replicas(dict.fromkeys(range(20)), 20, 10, start_index=19, replica_shift=0)
>>> for replicas in placed[[0, 1, 11, 19]].tolist():
...     print(replicas)
[19, 0, 1, 2, 3, 4, 5, 6, 7, 8]
[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
[10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
[18, 19, 0, 1, 2, 3, 4, 5, 6, 7]

Source: Kafka's AdminUtils.assignReplicasToBrokers and, for added
partitions, AdminZkClient.createNewPartitionsAssignment. Invariants C3 and C11.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from controller_core.model import IntArray

Positions = npt.NDArray[np.intp]
"""Positions in the circle, or numbers of racks."""

Racks = Mapping[int, str | None]
"""Broker ids, in Kafka's order (by id), with their racks; None for a broker without one."""

MAX_PARTITIONS = 10_000_000
"""Maximum number of partitions per call: five times that of the largest known clusters, 120 MB at replication factor 3."""


class PlacementError(ValueError):
    """No placement is possible. The message is Kafka's; `code` is the name of Kafka's error code."""

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

    Start index and replica shift are 0 or greater. Raises PlacementError.
    """
    check_placement(brokers, partitions, replication_factor)
    assert min(start_index, replica_shift, start_partition_id) >= 0, "Kafka's numbers for placement are never negative"
    circle = alternate_racks(brokers) if has_racks(brokers) else list(brokers)
    broker_count = len(circle)
    shifts_apart = max(1, broker_count - 1)
    first_block, last_block = start_partition_id // broker_count, (start_partition_id + partitions - 1) // broker_count
    # The shift grows at each multiple of n; a first partition that is a multiple (other than 0) includes its growth.
    passed = np.arange(first_block, last_block + 1, dtype=np.int64) - max(0, start_partition_id - 1) // broker_count
    rack_numbers = number_racks([brokers[broker] for broker in circle])
    step = max(rack_numbers) + 1 if has_racks(brokers) else 1
    shifts = (replica_shift % shifts_apart + passed) * step % shifts_apart
    occurring, block_of = np.unique(shifts, return_inverse=True)
    leaders = (np.arange(broker_count) + start_index % broker_count) % broker_count
    if has_racks(brokers):
        blocks = rack_aware_blocks(leaders, occurring, np.array(rack_numbers), replication_factor)
    else:
        blocks = rack_unaware_blocks(leaders, occurring, replication_factor)
    placed = np.array(circle, dtype=np.int32)[blocks].take(block_of, axis=0).reshape(-1, replication_factor)
    skipped = start_partition_id - first_block * broker_count
    requested: IntArray = placed[skipped : skipped + partitions]
    return requested


def place_added(
    brokers: Racks, first_replicas: Sequence[int], current: int, added: int, replica_shift: int | None = None
) -> IntArray:
    """Place partitions added to a topic of `current` partitions, whose partition 0 has these replicas.

    Kafka continues from the index of that partition's first replica among the brokers by id (or of the next higher id, or else
    of the first broker), and uses the same number as shift, as does None here. Raises PlacementError.
    """
    start_index = fixed_start_index(brokers, first_replicas[0])
    shift = start_index if replica_shift is None else replica_shift
    return place_replicas(brokers, added, len(first_replicas), start_index, shift, start_partition_id=current)


def fixed_start_index(brokers: Racks, first_replica: int) -> int:
    """Return the start index that continues a topic whose partition 0 has this first replica.

    >>> fixed_start_index({1: None, 3: None, 5: None}, 4)
    2
    """
    return next((index for index, broker in enumerate(sorted(brokers)) if broker >= first_replica), 0)


def check_placement(brokers: Racks, partitions: int, replication_factor: int) -> None:
    """Raise PlacementError, with Kafka's messages and in its order, if no placement is possible."""
    if partitions <= 0:
        raise PlacementError("INVALID_PARTITIONS", "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise PlacementError("INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        message = f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        raise PlacementError("INVALID_REPLICATION_FACTOR", message)
    if has_racks(brokers) and None in brokers.values():
        message = "Not all brokers have rack information for replica rack aware assignment."
        raise PlacementError("UNKNOWN_SERVER_ERROR", message)
    if partitions > MAX_PARTITIONS:
        message = f"Cannot place {partitions} partitions at once: request at most {MAX_PARTITIONS}."
        raise PlacementError("INVALID_PARTITIONS", message)


def has_racks(brokers: Racks) -> bool:
    """Whether any broker has a rack: placement is then rack-aware."""
    return any(rack is not None for rack in brokers.values())


def alternate_racks(brokers: Racks) -> list[int]:
    """Order brokers so that racks alternate: racks by name, brokers of a rack by id.

    >>> alternate_racks({0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"})
    [0, 3, 1, 5, 4, 2]
    """
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(brokers[broker] or "", []).append(broker)
    # Java compares strings by UTF-16 units; their big-endian bytes have the same order.
    queues = [by_rack[rack] for rack in sorted(by_rack, key=lambda rack: rack.encode("utf-16-be", "surrogatepass"))]
    longest = max(map(len, queues))
    return [queue[index] for index in range(longest) for queue in queues if index < len(queue)]


def number_racks(racks: Sequence[str | None]) -> list[int]:
    """Assign numbers to racks in order of first appearance."""
    numbers: dict[str | None, int] = {}
    return [numbers.setdefault(rack, len(numbers)) for rack in racks]


def rack_unaware_blocks(leaders: Positions, shifts: Positions, replication_factor: int) -> Positions:
    """Return one block of positions for each shift: shape (shifts, brokers, replication factor)."""
    broker_count = len(leaders)
    steps = 1 + (shifts[:, None] + np.arange(replication_factor - 1)) % max(1, broker_count - 1)
    blocks = np.empty((len(shifts), broker_count, replication_factor), dtype=np.intp)
    blocks[:, :, 0] = leaders
    blocks[:, :, 1:] = (leaders[None, :, None] + steps[:, None, :]) % broker_count
    return blocks


def rack_aware_blocks(leaders: Positions, shifts: Positions, racks: Positions, replication_factor: int) -> Positions:
    """Return one block of positions for each shift, skipping positions because of racks; `racks` are rack numbers by position.

    All rows advance together, one step at a time, until they have all their replicas. Each of the two reasons for skipping ends
    within one round, so no row needs more than two rounds.
    """
    broker_count, rack_count = len(leaders), int(racks.max()) + 1
    chosen = np.full((len(shifts) * broker_count, replication_factor), -1, dtype=np.intp)
    chosen[:, 0] = np.tile(leaders, len(shifts))
    shift = np.repeat(shifts, broker_count)
    count = np.ones(len(chosen), dtype=np.intp)
    incomplete = np.flatnonzero(count < replication_factor)
    for step in range(2 * broker_count):
        if not incomplete.size:
            break
        so_far = chosen[incomplete]
        position = (so_far[:, 0] + 1 + (shift[incomplete] + step) % (broker_count - 1)) % broker_count
        # Positions not chosen yet are -1 and match no position and no rack.
        same_position = (so_far == position[:, None]).any(axis=1)
        same_rack = ((racks[so_far] == racks[position][:, None]) & (so_far >= 0)).any(axis=1)
        fits = np.where(count[incomplete] < rack_count, ~same_rack, ~same_position)
        chosen_rows = incomplete[fits]
        chosen[chosen_rows, count[chosen_rows]] = position[fits]
        count[chosen_rows] += 1
        incomplete = incomplete[count[incomplete] < replication_factor]
    assert not incomplete.size, "every row gets its replicas within two rounds"
    return chosen.reshape(len(shifts), broker_count, replication_factor)
