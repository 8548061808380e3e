"""Outcomes of the items of a request, as error code and message, which most responses of Kafka's Admin APIs contain."""

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from controller_core.model import TopicPartition
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

NO_TOPIC_ID = UUID(int=0)
"""Value of a missing topic id: the topic was created before topic ids existed, or no topic is identified."""

Outcome = Failure | None
"""None: success."""

NOT_CONTROLLER = Failure(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
"""This process is not the active controller: the caller finds the controller and repeats the request there."""

OVERLOADED = Failure(
    ErrorCode.REQUEST_TIMED_OUT, "The controller cannot complete the request at the moment; retry the request."
)
"""An error that every client of Kafka retries and that does not imply success."""


def timed_out(message: str) -> Failure:
    """Return the error for a request whose timeout passed before its effect was complete; the operation continues."""
    return Failure(ErrorCode.REQUEST_TIMED_OUT, message)


def error_fields(outcome: Outcome) -> Body:
    """Return `error_code` and `error_message`; the message is null on success (ApiError.NONE)."""
    if outcome is None:
        return {"error_code": ErrorCode.NONE, "error_message": None}
    return {"error_code": outcome.code, "error_message": outcome.message}


def by_topic(outcomes: Mapping[TopicPartition, Outcome]) -> Iterable[tuple[str, list[tuple[int, Outcome]]]]:
    """Group outcomes of partitions by topic, in the order of first occurrence."""
    groups: dict[str, list[tuple[int, Outcome]]] = {}
    for (topic, partition), outcome in outcomes.items():
        groups.setdefault(topic, []).append((partition, outcome))
    return groups.items()


def duplicates(names: Iterable[str]) -> frozenset[str]:
    """Return the names that a request contains more than once, which Kafka refuses."""
    return frozenset(name for name, times in Counter(names).items() if times > 1)
