"""CreateAcls, DeleteAcls, DescribeAcls (AclApis, AclAuthorizer), in every version."""

from typing import Any

import pytest

from controller_core.shell.admin.acls import AclService, acl_handlers
from controller_core.shell.zookeeper import acls as acls_module
from controller_core.shell.zookeeper.acls import ZooKeeperAcls
from kafka_node.authorization.acl import BindingFilter, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.server import CloseConnection
from kafka_zookeeper.writes import Refused, RefusedReason
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper, following, topic

VERSIONS = range(4)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry changes without a pause."""
    monkeypatch.setattr(acls_module, "PAUSE_S", 0.0)


async def call(keeper: ZooKeeperAcls | None, key: ApiKey, body: Body, version: int = 3) -> Body:
    """Call a handler through Kafka's encoding."""
    request = codec.decode(key.message + "Request", version, codec.encode(key.message + "Request", version, body))
    service = None if keeper is None else AclService(keeper.known, lambda: keeper)
    answer = await acl_handlers(service)[key](RequestContext("CLIENT", None, "127.0.0.1", 1, version), request)
    return codec.decode(key.message + "Response", version, codec.encode(key.message + "Response", version, answer))


def creation(name: str = "orders", **others: Any) -> Body:
    """Return one ACL of CreateAcls."""
    usual = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return {**usual, **others}


def all_of(name: str | None = None, **others: Any) -> Body:
    """Return a filter for all ACLs, or for all of a name."""
    usual = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": name,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    return {**usual, **others}


@pytest.mark.parametrize("version", VERSIONS)
async def test_acls_are_created_described_and_deleted(version: int) -> None:
    """All three APIs in every version."""
    async with following(AclZooKeeper()) as keeper:
        created = await call(keeper, ApiKey.CREATE_ACLS, {"creations": [creation(), creation("payments")]}, version)
        assert [result["error_code"] for result in created["results"]] == [0, 0]
        described = await call(keeper, ApiKey.DESCRIBE_ACLS, all_of(), version)
        assert [resource["resource_name"] for resource in described["resources"]] == ["orders", "payments"]
        line = {"principal": "User:alice", "host": "*", "operation": 3, "permission_type": 3}
        assert described["resources"][0]["acls"] == [line]
        deleted = await call(keeper, ApiKey.DELETE_ACLS, {"filters": [all_of("orders"), all_of()]}, version)
        found = [[acl["resource_name"] for acl in result["matching_acls"]] for result in deleted["filter_results"]]
        assert found == [["orders"], ["payments"]]
        assert list(keeper.known.acls.patterns()) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_an_authorizer_security_is_disabled(version: int) -> None:
    """SECURITY_DISABLED in the error field of each response."""
    created = await call(None, ApiKey.CREATE_ACLS, {"creations": [creation(), creation("b")]}, version)
    deleted = await call(None, ApiKey.DELETE_ACLS, {"filters": [all_of()]}, version)
    described = await call(None, ApiKey.DESCRIBE_ACLS, all_of(), version)

    codes = [result["error_code"] for result in [*created["results"], *deleted["filter_results"], described]]
    assert codes == [ErrorCode.SECURITY_DISABLED] * 4


async def test_prefixed_and_literal_acls_are_distinct() -> None:
    """KIP-290; MATCH finds the ACLs that apply to a resource of the name."""
    prefixed = creation("or", resource_pattern_type=PatternType.PREFIXED)
    async with following(AclZooKeeper()) as keeper:
        await call(keeper, ApiKey.CREATE_ACLS, {"creations": [creation("or"), creation(), prefixed]})
        assert keeper.known.acls.of(Pattern(ResourceType.TOPIC, "or", PatternType.PREFIXED))
        found = await call(keeper, ApiKey.DESCRIBE_ACLS, all_of("orders", pattern_type_filter=PatternType.MATCH))

    expected = [("or", PatternType.PREFIXED), ("orders", PatternType.LITERAL)]
    assert [(resource["resource_name"], resource["pattern_type"]) for resource in found["resources"]] == expected


@pytest.mark.parametrize(
    "wrong",
    [
        creation(resource_type=ResourceType.CLUSTER),
        creation(""),
        creation("a/b"),
        creation(principal="alice"),
        creation(principal=""),
        creation(operation=Operation.ANY),
        creation(operation=99),
        creation(permission_type=Permission.ANY),
        creation(resource_pattern_type=PatternType.MATCH),
        creation(resource_type=ResourceType.ANY),
    ],
)
async def test_invalid_acl_does_not_affect_other_acls(wrong: Body) -> None:
    """INVALID_REQUEST for the invalid ACL only."""
    async with following(AclZooKeeper()) as keeper:
        answer = await call(keeper, ApiKey.CREATE_ACLS, {"creations": [wrong, creation("good")]})
        assert [result["error_code"] for result in answer["results"]] == [ErrorCode.INVALID_REQUEST, 0]
        assert keeper.known.acls.of(topic("good"))


async def test_unknown_operation_code_closes_connection() -> None:
    """As in Kafka's parser (CreateAclsRequest.validate)."""
    async with following(AclZooKeeper()) as keeper:
        with pytest.raises(CloseConnection):
            await call(keeper, ApiKey.CREATE_ACLS, {"creations": [creation(operation=Operation.UNKNOWN)]})


async def test_failed_write_is_reported_for_its_acl() -> None:
    """The other ACLs are written. Without a store all changes fail with a retriable error."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.faults.append(Refused(0, RefusedReason.NO_AUTH))
        answer = await call(keeper, ApiKey.CREATE_ACLS, {"creations": [creation(), creation("good")]})
        assert [result["error_code"] for result in answer["results"]] == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
        outcomes = await AclService(keeper.known, lambda: None).remove(keeper.known.acls.find(BindingFilter()))
        assert [failure.code for failure in outcomes.values() if failure is not None] == [ErrorCode.REQUEST_TIMED_OUT]
