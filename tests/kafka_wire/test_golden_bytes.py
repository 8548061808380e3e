"""Golden frames, byte by byte."""

import uuid

import pytest

from kafka_wire import ApiKey, Body, codec

TOPIC_ID = uuid.UUID(int=7)

REQUESTS: list[tuple[ApiKey, int, Body, list[str]]] = [
    (
        ApiKey.API_VERSIONS,
        0,
        {},
        ["0012 0000 00000001 0004 74657374"],
    ),
    (
        ApiKey.API_VERSIONS,
        3,
        {"client_software_name": "s", "client_software_version": "1"},
        [
            "0012 0003 00000001 0004 74657374 00",  # the client id keeps its int16 length, tags follow
            "02 73  02 31  00",  # compact strings: length plus one
        ],
    ),
    (
        ApiKey.CONTROLLED_SHUTDOWN,
        0,
        {"broker_id": 3},
        ["0007 0000 00000001", "00000003"],  # the one request whose header has no client id
    ),
    (
        ApiKey.LEADER_AND_ISR,
        7,
        {
            "controller_id": 1000,
            "controller_epoch": 2,
            "broker_epoch": 9,
            "topic_states": [
                {
                    "topic_name": "t",
                    "topic_id": TOPIC_ID,
                    "partition_states": [
                        {
                            "partition_index": 0,
                            "controller_epoch": 2,
                            "leader": 1,
                            "leader_epoch": 3,
                            "isr": [1, 2],
                            "partition_epoch": 4,
                            "replicas": [1, 2],
                            "is_new": True,
                        }
                    ],
                }
            ],
            "live_leaders": [{"broker_id": 1, "host_name": "h", "port": 9092}],
        },
        [
            "0004 0007 00000001 0004 74657374 00",
            "000003e8 00 00000002 0000000000000009 00",  # controller, no KRaft, its epoch, the broker's epoch, type
            "02  02 74  00000000000000000000000000000007",  # one topic: name, id
            "02  00000000 00000002 00000001 00000003",  # one partition: index, controller epoch, leader and its epoch
            "03 00000001 00000002  00000004",  # ISR, partition epoch
            "03 00000001 00000002  01  01",  # replicas, none to add, none to remove
            "01 00 00  00",  # new, recovered, no tags; the topic's tags
            "02  00000001 02 68 00002384 00",  # one live leader
            "00",
        ],
    ),
    (
        ApiKey.UPDATE_METADATA,
        6,
        {
            "controller_id": 1000,
            "live_brokers": [{"id": 1, "endpoints": [{"port": 9092, "host": "h", "listener": "L"}], "rack": None}],
        },
        [
            "0006 0006 00000001 0004 74657374 00",
            "000003e8 00000000 ffffffffffffffff 01",  # no topics
            "02  00000001  02 00002384 02 68 02 4c 0000 00",  # one broker, one endpoint
            "00 00  00",  # no rack; tags of the broker and of the request
        ],
    ),
]


@pytest.mark.parametrize(("key", "version", "body", "expected"), REQUESTS, ids=lambda one: getattr(one, "name", None))
def test_a_request_has_exactly_these_bytes(key: ApiKey, version: int, body: Body, expected: list[str]) -> None:
    """Header and body as Kafka 3.9.2's clients write them (test_java_judges.py compares with them)."""
    frame = codec.encode_request(key, version, 1, "test", body)

    assert bytes.fromhex("".join(expected)) == frame
    assert key == codec.decode_request(frame)[0].api_key


def test_an_api_versions_response_has_exactly_these_bytes() -> None:
    """KIP-511: flexible body after a header without tags. Tag 1 is the epoch of the finalized features, 8 bytes."""
    body = {"api_keys": [{"api_key": 18, "max_version": 4}], "finalized_features_epoch": 3}
    expected = "00000001" + "0000" + "02 0012 0000 0004 00" + "00000000" + "01 01 08 0000000000000003"

    assert bytes.fromhex(expected) == codec.encode_response(ApiKey.API_VERSIONS, 3, 1, body)


def test_an_alter_partition_response_has_exactly_these_bytes() -> None:
    """A flexible header: the correlation id and a byte for no tags."""
    partition = {"leader_id": 1, "leader_epoch": 3, "isr": [1], "partition_epoch": 5}
    body = {"topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}]}
    expected = [
        "00000001 00",
        "00000000 0000",  # no throttling, no error
        "02 00000000000000000000000000000007",
        "02 00000000 0000 00000001 00000003 02 00000001 00 00000005 00",
        "00 00",
    ]

    assert bytes.fromhex("".join(expected)) == codec.encode_response(ApiKey.ALTER_PARTITION, 3, 1, body)


def test_a_metadata_record_has_exactly_these_bytes() -> None:
    """Metadata records have no header in this codec; their frame belongs to the log."""
    body = {"topic_id": TOPIC_ID, "replicas": [1, 2], "isr": [1], "leader": 1, "leader_epoch": 3, "partition_epoch": 4}
    expected = [
        "ffffffff 00000000000000000000000000000007",  # partition id -1 is its default
        "03 00000001 00000002  02 00000001  01  01",
        "00000001 00000003 00000004 00",
    ]

    assert bytes.fromhex("".join(expected)) == codec.encode("PartitionRecord", 0, body)
