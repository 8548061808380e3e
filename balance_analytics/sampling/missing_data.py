"""Missing data of a sample: counts by kind and reason for metrics, and some error messages for the log.

Pure. In the columns of a sample missing values are UNKNOWN.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_wire import ErrorCode
from kafka_wire.net.client import MalformedResponse, RequestFailed, RequestTimedOut, UnsupportedVersion
from kafka_wire.net.cluster import MetadataRefused, NoMetadata

MAX_EXAMPLES = 8
"""Error messages of a sample that are logged; the counts contain all."""


class DataKind(StrEnum):
    """Kind of data. Offsets and committed offsets are counted in partitions, sizes in replicas, topics in topics."""

    TOPICS = "topics"
    OFFSETS = "offsets"
    SIZES = "sizes"
    COMMITTED = "committed"


class Reason(StrEnum):
    """Why data is missing."""

    CONNECTION = "connection"
    """The broker could not be reached, or the connection was closed before the response, for example because that was over the limit."""
    TIMED_OUT = "timed_out"
    """No response within the request's timeout, or before the sample's deadline."""
    NO_LEADER = "no_leader"
    MOVED = "moved"
    """The leader changed after the metadata was read; the next sample asks the new leader."""
    DELETED = "deleted"
    """Deleted after the metadata was read, or not created yet on this broker."""
    NOT_ALLOWED = "not_allowed"
    """The sampler's user lacks a right."""
    UNSUPPORTED = "unsupported"
    """The broker is too old for the request."""
    MALFORMED = "malformed"
    """The response could not be decoded."""
    LOG_DIR = "log_dir"
    """The broker reports no such replica, and one of its log directories is offline."""
    ABSENT = "absent"
    """The response does not contain it."""
    TOO_MANY_GROUPS = "too_many_groups"
    REFUSED = "refused"
    """Any other error of the broker."""


REASONS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reason.DELETED,
    ErrorCode.UNKNOWN_TOPIC_ID: Reason.DELETED,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reason.MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Reason.MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reason.MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Reason.NO_LEADER,
    ErrorCode.OFFSET_NOT_AVAILABLE: Reason.MOVED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reason.NOT_ALLOWED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reason.NOT_ALLOWED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reason.NOT_ALLOWED,
    ErrorCode.KAFKA_STORAGE_ERROR: Reason.LOG_DIR,
}
"""OFFSET_NOT_AVAILABLE: a new leader does not know its high watermark yet (KIP-207)."""


def reason_of(error_code: int) -> Reason:
    """Return the reason for an error code."""
    return REASONS.get(ErrorCode.of(error_code), Reason.REFUSED)


FAILURES = (
    (RequestTimedOut, Reason.TIMED_OUT),
    (MalformedResponse, Reason.MALFORMED),
    (UnsupportedVersion, Reason.UNSUPPORTED),
    (MetadataRefused, Reason.REFUSED),
)


def reason_of_failure(failure: RequestFailed) -> Reason:
    """Return the reason for a request without a response; that of the last broker for a cluster without metadata."""
    last = failure.failures[-1] if isinstance(failure, NoMetadata) else failure
    return next((reason for kind, reason in FAILURES if isinstance(last, kind)), Reason.CONNECTION)


@dataclass(slots=True)
class MissingData:
    """Missing data of one sample."""

    counts: Counter[tuple[DataKind, Reason]] = field(default_factory=Counter)
    examples: dict[str, None] = field(default_factory=dict)
    """Distinct error messages, in the order in which they occurred."""

    def add(self, kind: DataKind, reason: Reason, count: int, message: str) -> None:
        """Count missing values; `message` describes the cause, for the log."""
        if count:
            self.counts[kind, reason] += count
            if len(self.examples) < MAX_EXAMPLES:
                self.examples[message] = None
