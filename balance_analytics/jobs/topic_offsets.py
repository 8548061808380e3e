"""Messages of the samples topic that a run reads: from where the last run ended to the end as it is now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from balance_analytics.jobs.java_admin import admin_client, wait
from balance_analytics.jobs.samples import Samples, address
from balance_analytics.model.manifest import Position

Offsets = Mapping[int, int]
"""By partition."""


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """A topic's offsets: the first that is kept, the first of a message at or after a time (the end without any), and the end."""

    topic_id: str
    earliest: Offsets
    since: Offsets
    latest: Offsets


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Messages to read, by partition: from `start` on, without `end`."""

    topic: str
    start: Offsets
    end: Offsets

    @property
    def count(self) -> int:
        """How many offsets these are."""
        return sum(self.end[partition] - self.start[partition] for partition in self.end)

    def options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka reader."""
        named = {"startingOffsets": self.start, "endingOffsets": self.end}
        offsets = {
            name: {self.topic: {str(partition): offset for partition, offset in some.items()}}
            for name, some in named.items()
        }
        return {"subscribe": self.topic, **{name: json.dumps(value) for name, value in offsets.items()}}


def range_to_read(topic: str, ends: TopicEnds, position: Position) -> OffsetRange:
    """Return the messages behind a position; without one, those since the time that `ends` was asked for.

    A position behind the end is one of a topic that was deleted and created again: all of the new topic is read. What retention took
    before it was read is a gap.
    """
    known = position.offsets if position.topic_id == ends.topic_id else {}
    again = bool(position.offsets) and not known
    start = {}
    for partition, earliest in ends.earliest.items():
        offset = known.get(partition, earliest if again else ends.since[partition])
        start[partition] = max(offset, earliest) if offset <= ends.latest[partition] else earliest
    return OffsetRange(topic, start, dict(ends.latest))


def ends_of(samples: Samples, since_ms: int) -> TopicEnds:
    """Ask the cluster for a topic's offsets; `since_ms` is Unix time. Raises `Py4JError`."""
    jvm: Any = samples.spark._jvm  # noqa: SLF001 - Python has no other way to the Java client
    servers, topic = address(samples.place)
    with admin_client(jvm, {**samples.options, "bootstrap.servers": servers}) as admin:
        names = jvm.java.util.ArrayList()
        names.add(topic)
        described = jvm.java.util.HashMap(wait(jvm, admin.describeTopics(names).allTopicNames())).get(topic)
        partitions = [int(partition.partition()) for partition in described.partitions()]
        spec = jvm.org.apache.kafka.clients.admin.OffsetSpec
        asked = {"earliest": spec.earliest(), "since": spec.forTimestamp(since_ms), "latest": spec.latest()}
        found = {name: _offsets(jvm, admin, topic, partitions, spec) for name, spec in asked.items()}
        topic_id = str(described.topicId().toString())
    since = {
        partition: found["latest"][partition] if offset < 0 else offset for partition, offset in found["since"].items()
    }
    return TopicEnds(topic_id, found["earliest"], since, found["latest"])


def _offsets(jvm: Any, admin: Any, topic: str, partitions: list[int], spec: Any) -> dict[int, int]:
    """Return an offset of each partition; -1 where there is no message of such a time."""
    named = {partition: jvm.org.apache.kafka.common.TopicPartition(topic, partition) for partition in partitions}
    asked = jvm.java.util.HashMap()
    for key in named.values():
        asked.put(key, spec)
    listed = jvm.java.util.HashMap(wait(jvm, admin.listOffsets(asked).all()))
    return {partition: int(listed.get(key).offset()) for partition, key in named.items()}
