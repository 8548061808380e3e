"""The table of handlers: who is served, and what is answered when nothing can be done."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from controller_core.shell.active import OverloadedError, TermEndedError
from controller_core.shell.admin.handlers import handlers
from controller_core.zookeeper_mode.apis import SERVED
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.cases import case
from tests.controller_core.shell.admin.asking import active_with_topic, ask
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
"""Answered from what is known, without a turn."""

CHANGES = [key for key in REQUESTS if key not in READS]

NOT_HERE = {
    ApiKey.METADATA: ErrorCode.LEADER_NOT_AVAILABLE,
    ApiKey.CONTROLLED_SHUTDOWN: ErrorCode.STALE_CONTROLLER_EPOCH,
}
"""How "ask another" is said where it is not NOT_CONTROLLER."""


def request_of(key: ApiKey, version: int) -> Body:
    """The request, as the version writes it."""
    if key == ApiKey.DELETE_TOPICS and version >= 6:
        return {"topics": [{"name": "a", "topic_id": UUID(int=0)}], "timeout_ms": 1000}
    if key == ApiKey.METADATA and version < 4:
        return {"topics": [{"name": "a"}]}
    return REQUESTS[key]


def errors(body: Any) -> Iterator[ErrorCode]:
    """All error codes in a response, wherever they stand, but for NONE."""
    if isinstance(body, dict):
        if body.get("error_code"):
            yield ErrorCode(body["error_code"])
        for value in body.values():
            yield from errors(value)
    elif isinstance(body, list):
        for value in body:
            yield from errors(value)


def test_every_served_api_but_api_versions_has_a_handler() -> None:
    """served.SERVED is what the front offers to clients; ApiVersions is the front's own."""
    assert set(handlers(lambda: None)) == set(SERVED) - {ApiKey.API_VERSIONS}


@pytest.mark.parametrize("key", REQUESTS, ids=by_name)
async def test_every_served_version_is_answered_without_an_error(key: ApiKey) -> None:
    """A request that can be done is, and its response can be written in every version (served.SERVED)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (2, 1)})
            active.cluster.stray_replicas = {0: {9}} if key == ApiKey.UNREGISTER_BROKER else {}
            # The preferred leader leads already.
            expected = {ErrorCode.ELECTION_NOT_NEEDED} if key == ApiKey.ELECT_LEADERS else set()

            response = await ask(active, key, request_of(key, version), version)

            assert set(errors(response)) == expected


@pytest.mark.parametrize("key", REQUESTS, ids=by_name)
async def test_without_a_tenure_every_api_sends_the_caller_elsewhere(key: ApiKey) -> None:
    """Brokers that are not the controller answer NOT_CONTROLLER in each response's own shape (KafkaApis)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            response = await ask(None, key, request_of(key, version), version)

            assert set(errors(response)) == {NOT_HERE.get(key, ErrorCode.NOT_CONTROLLER)}


@pytest.mark.parametrize("key", CHANGES, ids=by_name)
async def test_a_tenure_lost_meanwhile_sends_the_caller_elsewhere(key: ApiKey) -> None:
    """What another controller has to do is never answered as done (fencing by /controller_epoch)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (1, 2)})
            active.failure = TermEndedError("deposed")

            response = await ask(active, key, request_of(key, version), version)

            assert set(errors(response)) == {NOT_HERE.get(key, ErrorCode.NOT_CONTROLLER)}


@pytest.mark.parametrize("key", CHANGES, ids=by_name)
async def test_too_much_to_do_is_answered_with_a_retriable_error(key: ApiKey) -> None:
    """Clients retry REQUEST_TIMED_OUT by themselves (Errors, RetriableException)."""
    for version in SERVED[key].all():
        with case(key.message, version):
            active = await active_with_topic("a", {0: (1, 2)})
            active.failure = OverloadedError("too many wait")

            response = await ask(active, key, request_of(key, version), version)

            assert set(errors(response)) == {ErrorCode.REQUEST_TIMED_OUT}


async def test_what_nobody_expected_is_left_to_the_front() -> None:
    """The front logs it and ends the connection; an answer could only be a guess."""
    active = active_with(failure=RuntimeError("a defect"))

    with pytest.raises(RuntimeError, match="a defect"):
        await ask(active, ApiKey.CREATE_TOPICS, REQUESTS[ApiKey.CREATE_TOPICS])
