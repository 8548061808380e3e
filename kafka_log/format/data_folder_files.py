"""Contents of the files of a broker's data folder that concern all of its partitions.

*-offset-checkpoint:    version 0, the number of entries, then topic, partition and offset on each line
.kafka_cleanshutdown:   {"version":0,"brokerEpoch":7}, written after all logs were closed

Source: Kafka's OffsetCheckpointFile, CheckpointFile and CleanShutdownFileHandler.
"""

import json
from collections.abc import Mapping

from kafka_log.errors import UnreadableFileError
from kafka_wire.topic_partition import TopicPartition

CHECKPOINT_VERSION = 0
CLEAN_SHUTDOWN_VERSION = 0

UNKNOWN_BROKER_EPOCH = -1


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    r"""Return the content of a checkpoint file.

    >>> encode_offsets({TopicPartition("orders", 0): 42})
    b'0\n1\norders 0 42\n'
    """
    lines = [CHECKPOINT_VERSION, len(offsets), *(f"{topic} {number} {at}" for (topic, number), at in offsets.items())]
    return "".join(f"{line}\n" for line in lines).encode()


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint file; an empty file, which Kafka creates first, has none.

    Raises UnreadableFileError.
    """
    lines = content.decode(errors="replace").splitlines()
    if not lines:
        return {}
    try:
        version, count = int(lines[0]), int(lines[1]) if len(lines) > 1 else 0
        entries = [line.split() for line in lines[2:]]
        offsets = {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError:
        raise UnreadableFileError("a line is malformed") from None
    if version != CHECKPOINT_VERSION:
        raise UnreadableFileError(f"version {version} is not supported, only {CHECKPOINT_VERSION}")
    if count != len(entries):
        raise UnreadableFileError(f"it announces {count} entries and has {len(entries)}")
    return offsets


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Return the content of the mark of a clean shutdown.

    >>> encode_clean_shutdown(7)
    b'{"version":0,"brokerEpoch":7}'
    """
    content = {"version": CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch}
    return json.dumps(content, separators=(",", ":")).encode()


def decode_clean_shutdown(content: bytes) -> int:
    """Return the broker epoch in the mark of a clean shutdown, -1 if it has none.

    The file itself is the mark: brokers before Kafka 3.7 leave it empty.
    """
    try:
        epoch = json.loads(content)["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return UNKNOWN_BROKER_EPOCH
    return epoch if isinstance(epoch, int) else UNKNOWN_BROKER_EPOCH
