"""What a look had to leave out, and why: counts for metrics, and a few words of each kind for the log.

Pure. Leaves out who asks, and what stands in the columns instead, which is always UNKNOWN.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_wire.errors import ErrorCode

MAX_EXAMPLES = 8
"""Words of a look that are kept for the log; the counts tell the rest."""


class What(StrEnum):
    """What is missing: offsets and committed offsets are counted by partitions, sizes by replicas, topics by themselves."""

    TOPICS = "topics"
    OFFSETS = "offsets"
    SIZES = "sizes"
    COMMITTED = "committed"


class Reason(StrEnum):
    """Why it is missing."""

    CONNECTION = "connection"
    """The broker could not be reached, or its connection ended before the answer: also after an answer over the limit."""
    TIMED_OUT = "timed_out"
    """The broker did not answer within its time, or the look's time was up."""
    NO_LEADER = "no_leader"
    MOVED = "moved"
    """The leader changed after it was asked who leads; the next look asks the new one."""
    GONE = "gone"
    """Deleted after it was listed, or not made yet."""
    NOT_ALLOWED = "not_allowed"
    """The sampler's user lacks a right."""
    UNSUPPORTED = "unsupported"
    """The broker is too old for the question."""
    MALFORMED = "malformed"
    """The answer could not be read."""
    LOG_DIR = "log_dir"
    """The broker holds no such replica, and a folder of it is offline."""
    ABSENT = "absent"
    """The broker answered, and did not name it."""
    TOO_MANY_GROUPS = "too_many_groups"
    REFUSED = "refused"
    """Any other error of the broker's."""


REASONS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reason.GONE,
    ErrorCode.UNKNOWN_TOPIC_ID: Reason.GONE,
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
    """Return the reason that an error code stands for."""
    return REASONS.get(ErrorCode.of(error_code), Reason.REFUSED)


@dataclass(slots=True)
class LeftOut:
    """Counts of one look."""

    counts: Counter[tuple[What, Reason]] = field(default_factory=Counter)
    examples: dict[str, None] = field(default_factory=dict)
    """Words, each once, in the order that they came."""

    def add(self, what: What, reason: Reason, count: int, words: str) -> None:
        """Count something; `words` say it for people."""
        if count:
            self.counts[what, reason] += count
            if len(self.examples) < MAX_EXAMPLES:
                self.examples[words] = None
