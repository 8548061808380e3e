"""The table of handlers: every served API has a handler and an error response in every version."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from controller_core.shell.active import OverloadedError, TermEndedError
from controller_core.shell.admin.handlers import handlers
from controller_core.zookeeper_mode.apis import SERVED
from kafka_wire import ApiKey, Body, ErrorCode
from tests.cases import case
from tests.controller_core.shell.admin.api_calls import active_with_topic, call
from tests.controller_core.shell.admin.fake_active import active_with
from tests.kafka_node.authorization.samples import by_name

REQUESTS: dict[ApiKey, Body] = {
    ApiKey.METADATA: {"topics": [{"name": "a"}], "allow_auto_topic_creation": True},
    ApiKey.DESCRIBE_CLUSTER: {},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [{"name": "a"}]},
    ApiKey.CREATE_TOPICS: {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
    ApiKey.DELETE_TOPICS: {"topic_names": ["a"], "timeout_ms": 1000},
    ApiKey.CREATE_PARTITIONS: {"topics": [{"name": "a", "count": 2, "assignments": None}], "timeout_ms": 1000},
    ApiKey.ELECT_LEADERS: {"topic_partitions": [{"topic": "a", "partitions": [0]}]},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "topics": [{"name": "a", "partitions": [{"partition_index": 0, "replicas": [1, 3]}]}]
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {"topics": None},
    ApiKey.ALTER_PARTITION: {"broker_id": 1, "broker_epoch": 101},
    ApiKey.CONTROLLED_SHUTDOWN: {"broker_id": 1},
    ApiKey.ALLOCATE_PRODUCER_IDS: {"broker_id": 1, "broker_epoch": 101},
    ApiKey.UNREGISTER_BROKER: {"broker_id": 9},
}
"""A request that succeeds on a cluster with topic a, in every version that is served."""

READS = {
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
}
"""Answered from the current state without an event."""

CHANGES = [key for key in REQUESTS if key not in READS]

STANDBY_CODES = {
    ApiKey.METADATA: ErrorCode.LEADER_NOT_AVAILABLE,
    ApiKey.CONTROLLED_SHUTDOWN: ErrorCode.STALE_CONTROLLER_EPOCH,
}
"""Error codes instead of NOT_CONTROLLER."""


def request_of(key: ApiKey, version: int) -> Body:
    """Return the request in the format of the version."""
    if key == ApiKey.DELETE_TOPICS and version >= 6:
        return {"topics": [{"name": "a", "topic_id": UUID(int=0)}], "timeout_ms": 1000}
    if key == ApiKey.METADATA and version < 4:
        return {"topics": [{"name": "a"}]}
    return REQUESTS[key]


def errors(body: Any) -> Iterator[ErrorCode]:
    """Return all error codes of a response other than NONE."""
    if isinstance(body, dict):
        if body.get("error_code"):
            yield ErrorCode(body["error_code"])
        for value in body.values():
            yield from errors(value)
    elif isinstance(body, list):
        for value in body:
            yield from errors(value)


def test_every_served_api_has_a_handler() -> None:
    """The front answers ApiVersions itself; it offers the others of apis.SERVED to clients."""
    assert set(handlers(lambda: None)) == set(SERVED) - {ApiKey.API_VERSIONS}


@pytest.mark.parametrize("key", REQUESTS, ids=by_name)
async def test_every_served_version_is_answered_without_an_error(key: ApiKey) -> None:
    """A valid request succeeds, and its response can be encoded in every version (apis.SERVED)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (2, 1)})
            active.cluster.stray_replicas = {0: {9}} if key == ApiKey.UNREGISTER_BROKER else {}
            # The preferred leader leads already.
            expected = {ErrorCode.ELECTION_NOT_NEEDED} if key == ApiKey.ELECT_LEADERS else set()

            response = await call(active, key, request_of(key, version), version)

            assert set(errors(response)) == expected


@pytest.mark.parametrize("key", REQUESTS, ids=by_name)
async def test_standby_answers_every_api_with_not_controller(key: ApiKey) -> None:
    """In the format of each response, as brokers that are not the controller do (KafkaApis)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            response = await call(None, key, request_of(key, version), version)

            assert set(errors(response)) == {STANDBY_CODES.get(key, ErrorCode.NOT_CONTROLLER)}


@pytest.mark.parametrize("key", CHANGES, ids=by_name)
async def test_end_of_term_during_a_request_answers_not_controller(key: ApiKey) -> None:
    """A request for another controller is never answered as successful (fencing by /controller_epoch)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (1, 2)})
            active.failure = TermEndedError("deposed")

            response = await call(active, key, request_of(key, version), version)

            assert set(errors(response)) == {STANDBY_CODES.get(key, ErrorCode.NOT_CONTROLLER)}


@pytest.mark.parametrize("key", CHANGES, ids=by_name)
async def test_overload_is_answered_with_a_retriable_error(key: ApiKey) -> None:
    """Clients retry REQUEST_TIMED_OUT automatically (Errors, RetriableException)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (1, 2)})
            active.failure = OverloadedError("too many wait")

            response = await call(active, key, request_of(key, version), version)

            assert set(errors(response)) == {ErrorCode.REQUEST_TIMED_OUT}


async def test_unexpected_exception_is_raised_to_the_front() -> None:
    """The front logs it and closes the connection, since no answer is known to be correct."""
    active = active_with(failure=RuntimeError("a defect"))

    with pytest.raises(RuntimeError, match="a defect"):
        await call(active, ApiKey.CREATE_TOPICS, REQUESTS[ApiKey.CREATE_TOPICS])
