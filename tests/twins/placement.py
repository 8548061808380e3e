"""Plain twin of `controller_core.rules.placement`: Kafka's formula without checks, one partition after another."""

from controller_core.rules.placement import Racks, alternate_racks, has_racks


def place_replicas_plain(
    brokers: Racks,
    partitions: int,
    replication_factor: int,
    start_index: int,
    replica_shift: int,
    *,
    start_partition_id: int = 0,
) -> list[list[int]]:
    """Return what `placement.place_replicas` returns, as lists."""
    aware = has_racks(brokers)
    circle = alternate_racks(brokers) if aware else list(brokers)
    racks = len(set(brokers.values()))
    placed = []
    shift = replica_shift
    for partition in range(start_partition_id, start_partition_id + partitions):
        if partition > 0 and partition % len(circle) == 0:
            shift += 1
        first = (start_index + partition) % len(circle)
        if aware:
            placed.append(one_rack_aware(brokers, circle, first, shift * racks, replication_factor))
        else:
            followers = [follower(circle, first, shift, step) for step in range(replication_factor - 1)]
            placed.append([circle[first], *followers])
    return placed


def follower(circle: list[int], first: int, shift: int, step: int) -> int:
    """Return the broker at a step from the first replica's position."""
    return circle[(first + 1 + (shift + step) % (len(circle) - 1)) % len(circle)]


def one_rack_aware(brokers: Racks, circle: list[int], first: int, shift: int, replication_factor: int) -> list[int]:
    """Place one partition rack-aware: a replica in every rack before a second one in any."""
    racks = len(set(brokers.values()))
    chosen = [circle[first]]
    step = 0
    while len(chosen) < replication_factor:
        broker = follower(circle, first, shift, step)
        taken = {brokers[other] for other in chosen}
        if broker not in chosen and (brokers[broker] not in taken or len(taken) == racks):
            chosen.append(broker)
        step += 1
    return chosen
