"""Bytes of the two checkpoints of a formatted directory: the metadata of a new cluster, and the voters of a new quorum.

Both are snapshots: a control batch with a header, records, and a control batch with a footer, all of epoch 0 and from offset 0.
Source: BatchFileWriter, RecordsSnapshotWriter, MetadataRecordSerde, DynamicVoter and VoterSet of Kafka.
"""

import ipaddress
import struct
from collections.abc import Iterable, Sequence

from controller_core.shell.quorum.endpoints import InitialController
from kafka_wire.codec import Body, encode
from kafka_wire.records import ControlType, Record, encode_batch
from kafka_wire.schema import definition
from kafka_wire.varints import write_uvarint

_CONTROL_KEY = struct.Struct(">hh")
_FRAME_VERSION = 1
"""Version of the frame of a metadata record: uvarints of it, the API key and the record's version, then the record."""

SUPPORTED_KRAFT_VERSIONS = (0, 1)

_BASE_CAPACITY = 16
_LOAD_FACTOR = 0.75


def metadata_record(name: str, version: int, body: Body) -> bytes:
    """Return the value of a metadata record in the log."""
    key = definition(name, version).api_key
    assert key is not None, "metadata records have API keys"
    return b"".join(map(write_uvarint, (_FRAME_VERSION, key, version))) + encode(name, version, body)


def bootstrap_checkpoint(records: Sequence[bytes], *, now_ms: int) -> bytes:
    """Return bootstrap.checkpoint: the first records of a new cluster, in one batch. Its header's timestamp is 0."""
    end = len(records) + 1
    return b"".join(
        (
            _control_batch(0, now_ms, [_header(0)]),
            encode_batch(
                [Record(offset, now_ms, None, value) for offset, value in enumerate(records, start=1)],
                partition_leader_epoch=0,
            ),
            _control_batch(end, now_ms, [_FOOTER]),
        )
    )


def quorum_checkpoint(voters: Iterable[InitialController], *, kraft_version: int, listener: str, now_ms: int) -> bytes:
    """Return the snapshot of offset 0 and epoch 0 that makes the voters of a new quorum."""
    controls = [
        _header(now_ms),
        (ControlType.KRAFT_VERSION, encode("KRaftVersionRecord", 0, {"version": 0, "kraft_version": kraft_version})),
        (ControlType.KRAFT_VOTERS, encode("VotersRecord", 0, _voters_record(voters, listener))),
    ]
    return _control_batch(0, now_ms, controls) + _control_batch(len(controls), now_ms, [_FOOTER])


def _voters_record(voters: Iterable[InitialController], listener: str) -> Body:
    by_id = {voter.node_id: voter for voter in voters}
    lowest, highest = SUPPORTED_KRAFT_VERSIONS
    return {
        "version": 0,
        "voters": [
            {
                "voter_id": node_id,
                "voter_directory_id": by_id[node_id].directory_id,
                "endpoints": [
                    {
                        "name": listener.upper(),
                        "host": java_host(by_id[node_id].address.host),
                        "port": by_id[node_id].address.port,
                    }
                ],
                "kraft_version_feature": {"min_supported_version": lowest, "max_supported_version": highest},
            }
            for node_id in java_order(sorted(by_id))
        ],
    }


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


def _header(last_contained_timestamp_ms: int) -> tuple[ControlType, bytes]:
    body = {"version": 0, "last_contained_log_timestamp": last_contained_timestamp_ms}
    return ControlType.SNAPSHOT_HEADER, encode("SnapshotHeaderRecord", 0, body)


_FOOTER = (ControlType.SNAPSHOT_FOOTER, encode("SnapshotFooterRecord", 0, {"version": 0}))


def _control_batch(base_offset: int, now_ms: int, controls: Iterable[tuple[ControlType, bytes]]) -> bytes:
    records = [
        Record(base_offset + position, now_ms, _CONTROL_KEY.pack(0, kind), value)
        for position, (kind, value) in enumerate(controls)
    ]
    return encode_batch(records, partition_leader_epoch=0, is_control=True)
