"""Shared parts of responses of Kafka's Admin APIs.

Most responses contain the outcome of each item of the request, as error code and message. Some wait after the changes are committed,
until they have taken effect at the brokers; the limits of these waits are here.
"""

import asyncio
from collections.abc import Iterable, Mapping

from controller_core.model import Cluster, TopicPartition
from controller_core.shell.active import ActiveController, Defaults
from kafka_node.outcomes import NO_TOPIC_ID, Outcome, duplicates, error_fields
from kafka_wire import ErrorCode, Failure

__all__ = [
    "LEADERLESS",
    "MAX_WAIT_MS",
    "NOT_CONTROLLER",
    "NO_TOPIC_ID",
    "OVERLOADED",
    "SETTINGS_UNKNOWN",
    "Outcome",
    "by_topic",
    "duplicates",
    "error_fields",
    "timed_out",
    "wait_for_brokers",
    "wait_for_defaults",
    "wait_for_leaders",
]

NOT_CONTROLLER = Failure(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
"""This process is not the active controller: the caller finds the controller and repeats the request there."""

OVERLOADED = Failure(
    ErrorCode.REQUEST_TIMED_OUT, "The controller cannot complete the request at the moment; retry the request."
)
"""An error that every client of Kafka retries and that does not imply success."""


def timed_out(message: str) -> Failure:
    """Return the error for a request whose timeout passed before its effect was complete; the operation continues."""
    return Failure(ErrorCode.REQUEST_TIMED_OUT, message)


def by_topic(outcomes: Mapping[TopicPartition, Outcome]) -> Iterable[tuple[str, list[tuple[int, Outcome]]]]:
    """Group outcomes of partitions by topic, in the order of first occurrence."""
    groups: dict[str, list[tuple[int, Outcome]]] = {}
    for (topic, partition), outcome in outcomes.items():
        groups.setdefault(topic, []).append((partition, outcome))
    return groups.items()


MAX_SILENCE_MS = 5_000
"""A caller that sends its next request to another broker must find the change there, so responses wait for the live brokers. A hung
broker counts as live until its registration expires; it is skipped once it has left one request unanswered for this time, which is
several times what a busy broker needs for a large LeaderAndIsr."""

MAX_WAIT_MS = 600_000
"""Limit of a request's timeout: clients give up after `default.api.timeout.ms` (a minute), and a timeout of days would occupy the
connection for days."""

MAX_SETTINGS_WAIT_MS = 5_000
"""Wait for the cluster's defaults, which a live broker reports within milliseconds after the beginning of an active term."""

SETTINGS_UNKNOWN = timed_out("No broker has reported the cluster's default settings yet; retry the request.")
"""Without the cluster's settings a topic might be created with one replica, or deleted although deletion is disabled."""

LEADERLESS = timed_out(
    "The partitions were created; one of them has no leader yet, since none of its replicas is live."
)


async def wait_for_defaults(active: ActiveController, timeout_ms: int) -> Defaults | Failure:
    """Wait for the cluster's defaults, up to the request's timeout and MAX_SETTINGS_WAIT_MS."""
    found = await active.known_defaults(max(0, min(timeout_ms, MAX_SETTINGS_WAIT_MS)))
    return SETTINGS_UNKNOWN if found is None else found


async def wait_for_brokers(active: ActiveController, timeout_ms: int) -> None:
    """Wait until the live brokers have the changes, up to the request's timeout and MAX_WAIT_MS.

    It is not an error if they do not have them in time: the changes are committed and will reach them.
    """
    if timeout_ms > 0:
        await active.brokers_answered(min(timeout_ms, MAX_WAIT_MS), MAX_SILENCE_MS)


async def wait_for_leaders(active: ActiveController, names: Iterable[str], timeout_ms: int) -> dict[str, Failure]:
    """Wait until all partitions of the topics have leaders that the live brokers know. Returns failures for leaderless topics.

    Source: DelayedCreatePartitions, which answers REQUEST_TIMED_OUT for a topic with a partition that has no leader.
    """
    waited = list(names)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(timeout_ms, MAX_WAIT_MS) / 1000
    await active.until(lambda: not _without_leader(active.cluster, waited), min(timeout_ms, MAX_WAIT_MS))
    await wait_for_brokers(active, int(1000 * (deadline - loop.time())))
    return dict.fromkeys(_without_leader(active.cluster, waited), LEADERLESS)


def _without_leader(cluster: Cluster, names: Iterable[str]) -> list[str]:
    topics = ((name, cluster.topics.get(name)) for name in names)
    return [name for name, topic in topics if topic is not None and (cluster.columns.leader[topic.rows] < 0).any()]
