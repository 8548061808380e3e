"""Refused requests (KafkaApis), with Kafka's error codes."""

import asyncio
import logging
from typing import Any

import pytest

from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization import guard as guard_module
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_node.authorization.needs import OnName
from kafka_node.authorization.table import OPEN
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.server import CloseConnection
from tests.cases import case
from tests.kafka_node.authorization.samples import (
    ADMIN,
    ALICE,
    Known,
    Right,
    by_name,
    context,
    guard_of,
    sample,
    versions_of,
)
from tests.kafka_node.authorization.test_refusal import codes

TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
JUDGED = [key for key, row in NEEDS.items() if row != OPEN]


def cluster(operation: Operation) -> Right:
    """A right on the cluster."""
    return (operation, ResourceType.CLUSTER, CLUSTER_NAME)


async def refused(guard: Guard, key: ApiKey, version: int, principal: str = ALICE, **changed: Any) -> set[int] | None:
    """Return the error codes of a refusal; None: the request is allowed."""
    answer = await guard.refuse(key, context(version, principal), {**sample(key, version), **changed})
    return None if answer is None else set(codes(answer)) - {0}


@pytest.mark.parametrize("key", JUDGED, ids=by_name)
async def test_caller_without_rights_is_refused_and_super_user_is_not(key: ApiKey) -> None:
    """Every API that is not open or screened, in every version."""
    for version in versions_of(key):
        with case(key.message, version):
            guard = guard_of()

            assert await guard.refuse(key, context(version), sample(key, version)) is not None
            assert await refused(guard, key, version, ADMIN) is None


RIGHTS: list[tuple[ApiKey, int, tuple[Right, ...], ErrorCode]] = [
    (ApiKey.PRODUCE, 9, ((Operation.WRITE, TOPIC, "x"), (Operation.WRITE, TRANSACTION, "x")), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.PRODUCE, 13, ((Operation.WRITE, TOPIC, "x"), (Operation.WRITE, TRANSACTION, "x")), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.LIST_OFFSETS, 7, ((Operation.DESCRIBE, TOPIC, "x"),), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.OFFSET_COMMIT, 8, ((Operation.READ, TOPIC, "x"), (Operation.READ, GROUP, "x")), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.OFFSET_FETCH, 8, ((Operation.DESCRIBE, TOPIC, "x"), (Operation.DESCRIBE, GROUP, "x")), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.JOIN_GROUP, 9, ((Operation.READ, GROUP, "x"),), ErrorCode.GROUP_AUTHORIZATION_FAILED),
    (ApiKey.DELETE_GROUPS, 2, ((Operation.DELETE, GROUP, "x"),), ErrorCode.GROUP_AUTHORIZATION_FAILED),
    (ApiKey.END_TXN, 3, ((Operation.WRITE, TRANSACTION, "x"),), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 3, ((Operation.WRITE, TOPIC, "x"), (Operation.WRITE, TRANSACTION, "x")), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 4, (cluster(Operation.CLUSTER_ACTION),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.DELETE_RECORDS, 2, ((Operation.DELETE, TOPIC, "x"),), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ApiKey.CONTROLLED_SHUTDOWN, 3, (cluster(Operation.CLUSTER_ACTION),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ALTER_PARTITION, 3, (cluster(Operation.CLUSTER_ACTION),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ALLOCATE_PRODUCER_IDS, 0, (cluster(Operation.CLUSTER_ACTION),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ELECT_LEADERS, 2, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, (cluster(Operation.DESCRIBE),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.CREATE_ACLS, 3, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.DELETE_ACLS, 3, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.DESCRIBE_ACLS, 3, (cluster(Operation.DESCRIBE),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.UPDATE_FEATURES, 1, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, (cluster(Operation.ALTER),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ApiKey.ALTER_CLIENT_QUOTAS, 1, (cluster(Operation.ALTER_CONFIGS),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
]  # fmt: skip


@pytest.mark.parametrize(("key", "version", "rights", "code"), RIGHTS)
async def test_request_is_allowed_only_with_all_needed_rights(
    key: ApiKey, version: int, rights: tuple[Right, ...], code: ErrorCode
) -> None:
    """Exactly these rights; where only the first one is missing, the code is that of its resource."""
    assert await refused(guard_of(*rights), key, version) is None
    assert await refused(guard_of(*rights[1:]), key, version) == {int(code)}
    for missing in range(len(rights)):
        assert await refused(guard_of(*rights[:missing], *rights[missing + 1 :]), key, version) is not None


async def test_one_denied_resource_refuses_the_whole_request() -> None:
    """A relayed request would be judged by the broker with the controller's rights."""
    topics = [{**sample(ApiKey.LIST_OFFSETS, 7)["topics"][0], "name": name} for name in ("a", "b")]
    right_to_one = guard_of((Operation.DESCRIBE, TOPIC, "a"))
    right_to_both = guard_of((Operation.READ, TOPIC, "a"), (Operation.WRITE, TOPIC, "b"))

    assert await refused(right_to_one, ApiKey.LIST_OFFSETS, 7, topics=topics) == {29}
    assert await refused(right_to_both, ApiKey.LIST_OFFSETS, 7, topics=topics) is None


async def test_config_requests_need_rights_on_the_resource() -> None:
    """On the cluster for configs of brokers, on the topic for configs of a topic."""
    topic, broker = ({"resource_type": kind, "resource_name": "x"} for kind in (2, 4))
    of_topic = guard_of((Operation.ALTER_CONFIGS, TOPIC, "x"))
    of_cluster = guard_of(cluster(Operation.ALTER_CONFIGS))
    for key, version in (
        (ApiKey.ALTER_CONFIGS, 2),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1),
        (ApiKey.DESCRIBE_CONFIGS, 4),
    ):
        assert await refused(of_topic, key, version, resources=[topic]) is None
        assert await refused(of_cluster, key, version, resources=[topic]) == {29}
        assert await refused(of_cluster, key, version, resources=[broker]) is None
        assert await refused(of_topic, key, version, resources=[broker]) == {31}


async def test_fetch_needs_rights_of_a_consumer_or_of_a_replica() -> None:
    """The topics of a fetch session cannot be judged: the client must send a full fetch."""
    read = guard_of((Operation.READ, TOPIC, "x"))
    replica = guard_of(cluster(Operation.CLUSTER_ACTION))
    full: dict[str, Any] = {"session_id": 0}
    consumer = {"replica_id": -1, **full}

    assert await refused(read, ApiKey.FETCH, 12, **consumer) is None
    assert await refused(read, ApiKey.FETCH, 12, replica_id=-1, session_id=7) == {70}
    assert await refused(read, ApiKey.FETCH, 12, replica_id=2, **full) == {31}
    assert await refused(replica, ApiKey.FETCH, 12, replica_id=2, **full) is None
    assert await refused(read, ApiKey.FETCH, 15, replica_state={"replica_id": 2, "replica_epoch": 1}, **full) == {31}
    state = {"replica_id": -1, "replica_epoch": -1}
    assert await refused(read, ApiKey.FETCH, 15, replica_state=state, **full) is None
    unknown = guard_of((Operation.READ, TOPIC, "x"), name=None)
    assert await refused(unknown, ApiKey.FETCH, 15, replica_state=state, **full) == {ErrorCode.UNKNOWN_TOPIC_ID}


async def test_response_about_all_resources_needs_rights_on_all() -> None:
    """Brokers filter by the caller's rights; for the controller they would filter nothing."""
    some = guard_of(
        (Operation.DESCRIBE, GROUP, "x"), (Operation.DESCRIBE, TOPIC, "x"), (Operation.DESCRIBE, TRANSACTION, "x")
    )
    every = guard_of(
        (Operation.DESCRIBE, GROUP, "*"), (Operation.DESCRIBE, TOPIC, "*"), (Operation.DESCRIBE, TRANSACTION, "*")
    )
    but_one = guard_of(
        (Operation.DESCRIBE, GROUP, "*"),
        (Operation.DESCRIBE, TOPIC, "*"),
        denied=[(Operation.DESCRIBE, TOPIC, "secret")],
    )

    for key, version, changed in (
        (ApiKey.DESCRIBE_TRANSACTIONS, 0, {}),
        (ApiKey.OFFSET_FETCH, 7, {"topics": None}),
        (ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": "x", "topics": None}]}),
    ):
        assert await refused(some, key, version, **changed) is not None
        assert await refused(every, key, version, **changed) is None
    assert await refused(but_one, ApiKey.OFFSET_FETCH, 7, topics=None) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


async def test_list_requests_need_no_right() -> None:
    """ListGroups, ListTransactions: Kafka refuses no caller, and the controller's own response is an empty list."""
    no_rights = guard_of()

    assert await refused(no_rights, ApiKey.LIST_GROUPS, 4) is None
    assert await refused(no_rights, ApiKey.LIST_TRANSACTIONS, 0) is None


async def test_idempotent_producer_needs_write_on_any_topic() -> None:
    """KIP-679; a transactional producer needs WRITE on its transactional id."""
    no_id: dict[str, Any] = {"transactional_id": None}

    assert await refused(guard_of((Operation.WRITE, TOPIC, "y")), ApiKey.INIT_PRODUCER_ID, 4, **no_id) is None
    assert await refused(guard_of(cluster(Operation.IDEMPOTENT_WRITE)), ApiKey.INIT_PRODUCER_ID, 4, **no_id) is None
    assert await refused(guard_of(), ApiKey.INIT_PRODUCER_ID, 4, **no_id) == {31}
    assert await refused(guard_of((Operation.WRITE, TOPIC, "y")), ApiKey.INIT_PRODUCER_ID, 4) == {53}


async def test_find_coordinator_needs_describe_on_the_key() -> None:
    """On the group or the transactional id; other key types are only for brokers."""
    group, transaction = guard_of((Operation.DESCRIBE, GROUP, "x")), guard_of((Operation.DESCRIBE, TRANSACTION, "x"))

    assert await refused(group, ApiKey.FIND_COORDINATOR, 4, key_type=0) is None
    assert await refused(transaction, ApiKey.FIND_COORDINATOR, 4, key_type=0) == {30}
    assert await refused(transaction, ApiKey.FIND_COORDINATOR, 3, key_type=1) is None
    assert await refused(transaction, ApiKey.FIND_COORDINATOR, 6, key_type=2) == {31}


async def test_delegation_token_requests_are_refused() -> None:
    """The token would be the controller's own. This applies to callers with all rights too."""
    everything = guard_of(everyone=True)
    for key in (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN):
        assert await refused(everything, key, 2) == {ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED}


async def test_denials_are_logged_with_their_reason_and_what_is_allowed_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """kafka.authorizer.logger: denials at INFO, the rest at DEBUG."""
    guard = guard_of((Operation.READ, TOPIC, "x"))
    with caplog.at_level(logging.DEBUG, logger="kafka_node.authorization.guard"):
        for name in ("x", "secret"):
            guard.judge(context(), OnName(Operation.READ, TOPIC, name), quiet=False)

    assert [(record.levelname, record.message, vars(record)["resource"]) for record in caplog.records] == [
        ("DEBUG", "Allowed operation", "TOPIC:x"),
        ("INFO", "Denied operation", "TOPIC:secret"),
    ]
    denied = vars(caplog.records[1])
    assert (denied["principal"], denied["host"], denied["operation"]) == (ALICE, "10.0.0.1", "READ")
    assert denied["reason"]


async def test_only_super_users_are_answered_until_acls_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most clients take a refusal as final, so the connection is closed and they retry."""
    monkeypatch.setattr(guard_module, "MAX_WAIT_S", 0.01)
    known = Known()
    guard = Guard(known, Rules(frozenset({ADMIN}), allow_everyone_if_no_acl=True), lambda _: None, NEEDS)

    assert await refused(guard, ApiKey.LIST_GROUPS, 4, ADMIN) is None
    with pytest.raises(CloseConnection):
        await refused(guard, ApiKey.LIST_GROUPS, 4)
    monkeypatch.setattr(guard_module, "MAX_WAIT_S", 10.0)
    asked = asyncio.create_task(refused(guard, ApiKey.LIST_GROUPS, 4))
    await asyncio.sleep(0)
    known.loaded.set()
    assert await asked is None
