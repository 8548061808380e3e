"""Reading of a whole topic from its start, without a group.

After a change of leaders the new leader's high watermark may lag behind what the old leader acknowledged, until the followers have
fetched once more. So the end of a partition counts only when all expected records were read, or when no record came for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from lab.checks.traffic_report import ReadRecord

QUIET_S = 15.0
"""Far longer than a follower takes to fetch; only a lost record costs this wait."""

POLL_S = 0.2


def read_all(
    settings: Mapping[str, Any],
    topic: str,
    partitions: Sequence[int],
    *,
    complete: Callable[[list[ReadRecord]], bool] = lambda _: True,
) -> list[ReadRecord]:
    """Return every record of `topic`, in each partition's order.

    `settings` are client settings with the bootstrap servers; reading ends at the end of every partition once `complete(read)`.
    """
    consumer = Consumer(
        {**settings, "group.id": "lab-read-back", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    read: list[ReadRecord] = []
    ended: set[int] = set()
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        last_news = time.monotonic()
        while time.monotonic() - last_news < QUIET_S:
            message = consumer.poll(POLL_S)
            if message is None:
                if len(ended) == len(partitions) and complete(read):
                    break
                continue
            partition, error = message.partition(), message.error()
            assert partition is not None, "a consumer's message carries its partition"
            if error is None:
                offset = message.offset()
                assert offset is not None, "a record carries its offset"
                read.append(ReadRecord(partition, offset, message.value()))
                last_news = time.monotonic()
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                ended.add(partition)
    finally:
        consumer.close()
    return read
