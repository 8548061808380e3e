"""The metadata log as an observer follows it: what is applied, what waits for its commit, and what is refused."""

from uuid import UUID

import pytest

from kafka_log.format.control_records import snapshot_batches
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import LATEST_PRODUCTION
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import FeatureLevelRecord, MetadataRecord, TopicRecord
from kafka_wire.records import Record, encode_batch
from light_broker.control.kraft.followed_log import FollowedLog

LEVEL = FeatureLevelRecord("metadata.version", LATEST_PRODUCTION)


def topic(number: int) -> TopicRecord:
    """Return the record of a topic."""
    return TopicRecord(f"topic-{number}", UUID(int=1000 + number))


def batch(base_offset: int, *found: MetadataRecord, epoch: int = 1) -> bytes:
    """Return a batch of the log."""
    values = (encode_record(record, LATEST_PRODUCTION) for record in found)
    records = [Record(base_offset + place, 7, None, value) for place, value in enumerate(values)]
    return encode_batch(records, partition_leader_epoch=epoch)


def commit(log: FollowedLog, high_watermark: int) -> None:
    """Apply what is committed."""
    for _ in log.commit(high_watermark):
        pass


def names(image: MetadataImage) -> list[str]:
    """Return the topics of an image."""
    return list(image.topic_ids)


def test_only_committed_batches_are_applied() -> None:
    """An observer fetches beyond the high watermark (KafkaRaftClient)."""
    log = FollowedLog()
    log.append(batch(0, LEVEL) + batch(1, topic(1)) + batch(2, topic(2)))

    commit(log, 2)

    assert (names(log.applied.image), log.applied.end_offset, log.end) == (["topic-1"], 2, (3, 1))
    assert log.is_caught_up
    commit(log, 3)
    assert names(log.applied.image) == ["topic-1", "topic-2"]


def test_a_log_is_caught_up_only_after_a_leader_has_answered() -> None:
    """Before the first answer the high watermark is unknown."""
    log = FollowedLog()
    assert not log.is_caught_up
    commit(log, 0)
    assert log.is_caught_up


def test_batches_that_another_leader_does_not_have_are_forgotten() -> None:
    """KIP-595: a diverging epoch cuts the log, which then continues with the batches of the new leader."""
    log = FollowedLog()
    log.append(batch(0, LEVEL) + batch(1, topic(1)) + batch(2, topic(2)))
    commit(log, 1)

    log.truncate(2)
    log.append(batch(2, topic(3), epoch=2))
    commit(log, 3)

    assert (names(log.applied.image), log.end) == (["topic-1", "topic-3"], (3, 2))


def test_a_leader_that_lacks_committed_records_is_refused() -> None:
    """A committed record is never lost; the broker must not go on with another state."""
    log = FollowedLog()
    log.append(batch(0, LEVEL) + batch(1, topic(1)))
    commit(log, 2)

    with pytest.raises(MetadataError, match="ends at offset 1, but records up to 2 were committed"):
        log.truncate(1)


def test_a_batch_that_does_not_follow_the_last_one_is_refused() -> None:
    """A gap would lose records without a word."""
    with pytest.raises(MetadataError, match="sent a batch at offset 5 for 0"):
        FollowedLog().append(batch(5, LEVEL))


def test_a_snapshot_replaces_everything() -> None:
    """The image, the end of the log, and kraft.version of its control records."""
    log = FollowedLog()
    log.append(batch(0, LEVEL) + batch(1, topic(1)))
    commit(log, 1)
    values = [encode_record(record, LATEST_PRODUCTION) for record in (LEVEL, topic(9))]
    data = b"".join(
        snapshot_batches(values, epoch=3, timestamp_ms=8, last_contained_timestamp_ms=7, kraft_version=1, voters=[])
    )

    for _ in log.load(data, 40, 3):
        pass

    assert (names(log.applied.image), log.end, log.kraft_version) == (["topic-9"], (40, 3), 1)
    assert log.is_caught_up
