"""What became of one item of a request, as most responses of Kafka's Admin APIs say it: an error code and words.

Leaves out the responses that say it in another way: their own modules know.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from controller_core.model.ids import TopicPartition
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

NO_TOPIC_ID = UUID(int=0)
"""What stands for a topic's id where there is none: the topic was made before there were ids, or no topic is meant."""

Outcome = Failure | None
"""None: it was done."""

NOT_CONTROLLER = Failure(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
"""This process does not hold the cluster, or no longer: the caller asks who does, and asks there."""

OVERLOADED = Failure(
    ErrorCode.REQUEST_TIMED_OUT, "The controller has too much to do at the moment; the request may be sent again."
)
"""Retriable for every client of Kafka, and never taken as a sign that something was done."""


def timed_out(message: str) -> Failure:
    """Say that the request's timeout passed before what it asked for was seen to be done; it goes on all the same."""
    return Failure(ErrorCode.REQUEST_TIMED_OUT, message)


def error_fields(outcome: Outcome) -> Body:
    """Fill in `error_code` and `error_message`, which is null where all went well (ApiError.NONE)."""
    if outcome is None:
        return {"error_code": ErrorCode.NONE, "error_message": None}
    return {"error_code": outcome.code, "error_message": outcome.message}


def by_topic(outcomes: Mapping[TopicPartition, Outcome]) -> Iterable[tuple[str, list[tuple[int, Outcome]]]]:
    """Group what became of partitions by topic, in order of first appearance."""
    groups: dict[str, list[tuple[int, Outcome]]] = {}
    for (topic, partition), outcome in outcomes.items():
        groups.setdefault(topic, []).append((partition, outcome))
    return groups.items()


def duplicates(names: Iterable[str]) -> frozenset[str]:
    """Find the names that a request has more than once: Kafka refuses to guess which of them is meant."""
    return frozenset(name for name, times in Counter(names).items() if times > 1)
