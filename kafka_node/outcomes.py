"""Outcomes of the items of a request, as responses have them. Pure."""

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from kafka_node.topic_names import illegal_name_reason, is_internal
from kafka_wire import Body, ErrorCode, Failure

NO_TOPIC_ID = UUID(int=0)
"""Value of a missing topic id: the topic was created before topic ids existed, or no topic is identified."""

Outcome = Failure | None
"""None: success."""


def error_fields(outcome: Outcome) -> Body:
    """Return `error_code` and `error_message`; the message is null on success (ApiError.NONE)."""
    if outcome is None:
        return {"error_code": ErrorCode.NONE, "error_message": None}
    return {"error_code": outcome.code, "error_message": outcome.message}


def duplicates(names: Iterable[str]) -> frozenset[str]:
    """Return the names that a request contains more than once, which Kafka refuses."""
    return frozenset(name for name, times in Counter(names).items() if times > 1)


def missing_topic(name: str) -> Body:
    """Describe a topic that does not exist, or whose name is invalid, in Metadata and DescribeTopicPartitions."""
    is_valid = illegal_name_reason(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return {**failed_topic(name, code), "is_internal": is_internal(name)}


def failed_topic(name: str | None, code: ErrorCode, topic_id: UUID = NO_TOPIC_ID) -> Body:
    """Describe a topic by an error only, in the same APIs."""
    return {"error_code": code, "name": name, "topic_id": topic_id, "is_internal": False, "partitions": []}
