"""Order of keys that are data."""

import json
from pathlib import Path

import pytest

from kafka_wire.java_hash import java_hash
from kafka_zookeeper.formats.configs import encode_config
from kafka_zookeeper.formats.topics import TopicAssignment, encode_topic

_ORDERS = (Path(__file__).parent / "golden" / "partition_orders.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("line", _ORDERS, ids=lambda line: f"{line.split(':')[0]} partitions")
def test_partitions_are_written_in_kafkas_order(line: str):
    """From TopicZNode.encode of Kafka 3.9.2, for several sizes of its table."""
    count, order = line.split(": ")

    document = encode_topic(TopicAssignment(dict.fromkeys(range(int(count)), (1,))))

    assert order.split(" ") == list(json.loads(document)["partitions"])


def _names(text: str) -> list[str]:
    return text.split(" ")


def test_configs_are_written_in_kafkas_order_after_the_first_growth():
    """From ConfigEntityZNode.encode of Kafka 3.9.2 with 14 entries: a table of 32 buckets."""
    written_by_kafka = _names(
        "zeta compression.type leader.replication.throttled.replicas max.message.bytes min.insync.replicas "
        "unclean.leader.election.enable retention.bytes cleanup.policy flush.ms follower.replication.throttled.replicas "
        "retention.ms segment.bytes segment.ms flush.messages"
    )
    put = _names(
        "zeta retention.ms compression.type leader.replication.throttled.replicas "
        "follower.replication.throttled.replicas cleanup.policy segment.bytes min.insync.replicas max.message.bytes "
        "retention.bytes flush.ms flush.messages unclean.leader.election.enable segment.ms"
    )

    written = json.loads(encode_config(dict.fromkeys(put, "v")))["config"]

    assert written_by_kafka == list(written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("11", 1568), ("retention.ms", 0xFFFFFFFF & -1339220362), ("\U0001f600", 0xD83D * 31 + 0xDE00)],
)
def test_the_hash_equals_javas(text: str, expected: int):
    """The definition of String.hashCode in the Java API, also above 16 and 32 bits."""
    assert java_hash(text) == expected
