"""Bytes of the two checkpoints of a formatted directory: the metadata of a new cluster, and the voters of a new quorum.

Both are snapshots of epoch 0 (`kafka_log.format.control_records`). Source: BatchFileWriter, DynamicVoter and VoterSet
of Kafka.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from controller_core.shell.quorum.endpoints import InitialController
from kafka_log.format.control_records import Voter, snapshot_batches

SUPPORTED_KRAFT_VERSIONS = (0, 1)

_BASE_CAPACITY = 16
_LOAD_FACTOR = 0.75


def bootstrap_checkpoint(records: Sequence[bytes], *, now_ms: int) -> bytes:
    """Return bootstrap.checkpoint: the first records of a new cluster, in one batch. Its header's timestamp is 0."""
    batches = snapshot_batches(
        records, epoch=0, timestamp_ms=now_ms, last_contained_timestamp_ms=0, max_records=len(records)
    )
    return b"".join(batches)


def quorum_checkpoint(
    voters: Iterable[InitialController], *, kraft_version: int, listener: str, now_ms: int
) -> Iterator[bytes]:
    """Return the batches of the snapshot of offset 0 and epoch 0 that makes the voters of a new quorum."""
    by_id = {voter.node_id: voter for voter in voters}
    return snapshot_batches(
        (),
        epoch=0,
        timestamp_ms=now_ms,
        last_contained_timestamp_ms=now_ms,
        kraft_version=kraft_version,
        voters=[_voter(by_id[node_id], listener) for node_id in java_order(sorted(by_id))],
    )


def _voter(controller: InitialController, listener: str) -> Voter:
    endpoint = (listener.upper(), java_host(controller.address.host), controller.address.port)
    return Voter(controller.node_id, controller.directory_id, (endpoint,), *SUPPORTED_KRAFT_VERSIONS)


def java_host(host: str) -> str:
    """Return an IPv6 address as Java prints it, in eight groups; another host is unchanged.

    >>> java_host("::1"), java_host("host.example")
    ('0:0:0:0:0:0:0:1', 'host.example')
    """
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.scope_id is not None:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def java_order(keys: Sequence[int]) -> list[int]:
    """Return non-negative keys in the order of Java's HashMap.

    The order of voters has no meaning; with Kafka's the same arguments give the same bytes. Kafka fills a map one by one, and copies
    it into one of the smallest fitting size. Buckets of more than eight keys, which Java sorts differently, are not covered.

    >>> java_order([101, 102, 103, 104])
    [104, 101, 102, 103]
    """
    capacity = _BASE_CAPACITY
    while len(keys) > capacity * _LOAD_FACTOR:
        capacity *= 2
    filled = _by_bucket(keys, capacity)
    return _by_bucket(filled, 1 << (int(len(keys) / _LOAD_FACTOR + 1) - 1).bit_length())


def _by_bucket(keys: Sequence[int], capacity: int) -> list[int]:
    return sorted(keys, key=lambda key: (key ^ key >> 16) & (capacity - 1))
