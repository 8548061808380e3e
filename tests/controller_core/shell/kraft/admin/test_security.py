"""Requests about ACLs, credentials, quotas, delegation tokens and features to the active controller, on a quorum in memory."""

from random import Random
from typing import Any

import pytest

from controller_core.metadata.delegation_tokens import TokenSettings, token_hmac
from controller_core.metadata.feature_changes import QuorumFeatures
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.admin.security_table import SERVED, SecurityParts, security_handlers
from controller_core.shell.kraft.security import ImageAcls
from kafka_metadata.metadata_versions import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.guard import EVERYTHING, Ask
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, Failure, codec
from tests.controller_core.shell.kraft.memory_quorum import Member, SharedLog

SUPPORTED = {METADATA_VERSION: (7, 30), ELR_VERSION: (0, 1), "group.version": (0, 1), KRAFT_VERSION: (0, 1)}


class KRaftVersion:
    """kraft.version of a quorum whose answer a test chooses."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        self.calls: list[tuple[int, bool]] = []

    async def __call__(self, level: int, upgrade_type: int, *, validate_only: bool) -> Failure | None:  # noqa: ARG002
        """Note the request."""
        self.calls.append((level, validate_only))
        return self.failure


class Cluster:
    """An active controller and its handlers."""

    def __init__(self, member: Member, *, has_authorizer: bool = True, ask: Ask = EVERYTHING) -> None:
        self.member = member
        self.kraft_version = KRaftVersion()
        parts = SecurityParts(
            acls=ImageAcls(member.controller) if has_authorizer else None,
            asking=lambda _context: ask,
            tokens=TokenSettings("secret", max_lifetime_ms=1_000_000, expiry_time_ms=100_000),
            features=lambda: QuorumFeatures(member.id, SUPPORTED, (member.id,), 1),
            kraft_version=self.kraft_version,
            random=Random(1),
        )
        self.handlers: dict[ApiKey, RequestHandler] = security_handlers(member.controller, parts)

    async def send(self, key: ApiKey, request: Body, principal: str = "User:alice") -> Any:
        """Send a request through the codec in the highest served version, and return the decoded response."""
        version = SERVED[key].highest
        body = codec.decode(f"{key.message}Request", version, codec.encode(f"{key.message}Request", version, request))
        context = RequestContext("CONTROLLER", None, "127.0.0.1", 1, version, principal)
        response = await self.handlers[key](context, body)
        assert isinstance(response, dict)
        return codec.decode(
            f"{key.message}Response", version, codec.encode(f"{key.message}Response", version, response)
        )


@pytest.fixture
def cluster(active: Member) -> Cluster:
    """The handlers of the active controller."""
    return Cluster(active)


def creation(name: str, principal: str = "User:bob") -> Body:
    """Return a creation that allows reading a topic."""
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": principal,
        "host": "*",
        "operation": Operation.READ,
        "permission_type": 3,
    }


def acl_filter(name: str | None) -> Body:
    """Return a filter of ACLs for a topic, or all."""
    return {
        "resource_type_filter": 1,
        "resource_name_filter": name,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


async def test_acls_are_created_listed_and_deleted(cluster: Cluster) -> None:
    """AclApis; an invalid ACL does not affect the others."""
    body = {"creations": [creation("a"), creation("b"), creation("a", principal="bob")]}
    created = await cluster.send(ApiKey.CREATE_ACLS, body)
    described = await cluster.send(ApiKey.DESCRIBE_ACLS, acl_filter(None))
    deleted = await cluster.send(ApiKey.DELETE_ACLS, {"filters": [acl_filter("a"), acl_filter("none")]})
    left = await cluster.send(ApiKey.DESCRIBE_ACLS, acl_filter(None))

    assert [result["error_code"] for result in created["results"]] == [0, 0, ErrorCode.INVALID_REQUEST]
    assert [resource["resource_name"] for resource in described["resources"]] == ["a", "b"]
    assert [len(result["matching_acls"]) for result in deleted["filter_results"]] == [1, 0]
    assert [resource["resource_name"] for resource in left["resources"]] == ["b"]


async def test_acls_need_an_authorizer(active: Member) -> None:
    """AclApis: SECURITY_DISABLED."""
    cluster = Cluster(active, has_authorizer=False)

    created = await cluster.send(ApiKey.CREATE_ACLS, {"creations": [creation("a")]})
    described = await cluster.send(ApiKey.DESCRIBE_ACLS, acl_filter(None))
    deleted = await cluster.send(ApiKey.DELETE_ACLS, {"filters": [acl_filter(None)]})

    found = [created["results"][0], described, deleted["filter_results"][0]]
    assert [result["error_code"] for result in found] == [ErrorCode.SECURITY_DISABLED] * 3


async def test_credentials_are_altered_and_described(cluster: Cluster) -> None:
    """KIP-554."""
    upsertion = {"name": "carol", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
    body = {"deletions": [{"name": "dave", "mechanism": 1}], "upsertions": [upsertion]}

    altered = await cluster.send(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, body)
    described = await cluster.send(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None})
    missing = await cluster.send(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "dave"}]})

    assert {result["user"]: result["error_code"] for result in altered["results"]} == {
        "carol": 0,
        "dave": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert [(result["user"], result["credential_infos"]) for result in described["results"]] == [
        ("carol", [{"mechanism": 1, "iterations": 4096}])
    ]
    assert missing["results"][0]["error_code"] == ErrorCode.RESOURCE_NOT_FOUND


async def test_quotas_are_altered(cluster: Cluster) -> None:
    """KIP-546; an invalid entity does not affect the others."""
    good = {
        "entity": [{"entity_type": "user", "entity_name": "carol"}, {"entity_type": "client-id", "entity_name": None}],
        "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
    }
    bad = {**good, "entity": [{"entity_type": "planet", "entity_name": "earth"}]}

    altered = await cluster.send(ApiKey.ALTER_CLIENT_QUOTAS, {"entries": [good, bad], "validate_only": False})

    assert sorted(entry["error_code"] for entry in altered["entries"]) == [0, ErrorCode.INVALID_REQUEST]
    assert [dict(values).keys() for values in cluster.member.controller.committed_image.client_quotas.values()] == [
        {"producer_byte_rate"}
    ]


async def test_a_token_is_created_renewed_and_removed(cluster: Cluster) -> None:
    """KIP-48: the HMAC follows from the id and the secret key."""
    renewer = {"principal_type": "User", "principal_name": "bob"}
    body = {"owner_principal_type": None, "owner_principal_name": None, "renewers": [renewer], "max_lifetime_ms": -1}

    created = await cluster.send(ApiKey.CREATE_DELEGATION_TOKEN, body)
    renewal = {"hmac": created["hmac"], "renew_period_ms": 50_000}
    renewed = await cluster.send(ApiKey.RENEW_DELEGATION_TOKEN, renewal, principal="User:bob")
    stranger = await cluster.send(ApiKey.RENEW_DELEGATION_TOKEN, renewal, principal="User:eve")
    removal = {"hmac": created["hmac"], "expiry_time_period_ms": -1}
    removed = await cluster.send(ApiKey.EXPIRE_DELEGATION_TOKEN, removal)

    assert (created["error_code"], created["principal_name"]) == (0, "alice")
    assert bytes(created["hmac"]) == token_hmac("secret", created["token_id"])
    assert renewed["error_code"] == 0
    assert stranger["error_code"] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert removed["error_code"] == 0
    assert cluster.member.controller.committed_image.delegation_tokens == {}


class _Nothing:
    """Denies every operation. Implements Ask."""

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:  # noqa: ARG002
        return False

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:  # noqa: ARG002
        return False


async def test_a_token_for_another_principal_needs_a_right(active: Member) -> None:
    """ControllerApis.handleCreateDelegationTokenRequest (KIP-373); without authentication there is no token at all."""
    cluster = Cluster(active, ask=_Nothing())
    body = {
        "owner_principal_type": "User",
        "owner_principal_name": "bob",
        "renewers": [],
        "max_lifetime_ms": -1,
    }

    denied = await cluster.send(ApiKey.CREATE_DELEGATION_TOKEN, body)
    anonymous = await cluster.send(ApiKey.CREATE_DELEGATION_TOKEN, body, principal="User:ANONYMOUS")

    assert denied["error_code"] == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert anonymous["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def update(**levels: int) -> Body:
    """Return upgrades of features; underscores are dots."""
    updates = [
        {"feature": name.replace("_", "."), "max_version_level": level, "upgrade_type": 1}
        for name, level in levels.items()
    ]
    return {"timeout_ms": 20_000, "feature_updates": updates, "validate_only": False}


async def test_features_and_kraft_version_are_updated_together(cluster: Cluster) -> None:
    """kraft.version is the quorum's: validated first, changed last."""
    cluster.kraft_version.failure = Failure(ErrorCode.INVALID_UPDATE_VERSION, "not now")
    refused = await cluster.send(ApiKey.UPDATE_FEATURES, update(group_version=1, kraft_version=1))

    assert refused["error_code"] == ErrorCode.INVALID_UPDATE_VERSION
    assert "group.version" not in cluster.member.controller.committed_image.features

    accepted = await cluster.send(ApiKey.UPDATE_FEATURES, update(group_version=1))

    assert accepted["error_code"] == 0
    assert cluster.member.controller.committed_image.features["group.version"].feature_level == 1
    assert cluster.kraft_version.calls == [(1, True)]


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "reason"),
    [
        ("foo.version", 0, 1, "Feature foo.version not found."),
        ("foo.version", 0, 2, "Feature foo.version not found."),
        ("foo.version", -1, 1, "A feature version cannot be less than 0."),
        ("group.version", 0, 77, "The controller does not support the given upgrade type."),
        (METADATA_VERSION, 0, 2, "Local controller 101 only supports versions 7-30"),
        (KRAFT_VERSION, 1, 0, "The controller does not support the given upgrade type."),
        (KRAFT_VERSION, -1, 1, "A feature version cannot be less than 0."),
        (KRAFT_VERSION, 2, 1, "Local controller 101 only supports versions 0-1"),
        (KRAFT_VERSION, 1, 2, "Can't downgrade to a newer version."),
    ],
)
async def test_a_refused_feature_is_answered_with_kafkas_message(
    cluster: Cluster, feature: str, level: int, upgrade_type: int, reason: str
) -> None:
    """FeatureControlManager.updateFeature, Feature.featureFromName; the quorum is not asked."""
    asked = {"feature": feature, "max_version_level": level, "upgrade_type": upgrade_type}
    body = {"timeout_ms": 20_000, "feature_updates": [asked], "validate_only": False}

    answer = await cluster.send(ApiKey.UPDATE_FEATURES, body)

    message = f"Invalid update version {level} for feature {feature}. {reason}"
    assert answer["error_code"] == ErrorCode.INVALID_UPDATE_VERSION
    assert answer["error_message"].endswith(f" had an error: {message}")
    assert cluster.kraft_version.calls == []


async def test_a_standby_refuses_changes_and_lists_committed_acls(log: SharedLog, active: Member) -> None:
    """NOT_CONTROLLER in each API's form; StandardAuthorizer lists what is committed."""
    standby = Cluster(log.add(102))
    await Cluster(active).send(ApiKey.CREATE_ACLS, {"creations": [creation("a")]})

    created = await standby.send(ApiKey.CREATE_ACLS, {"creations": [creation("b")]})
    updated = await standby.send(ApiKey.UPDATE_FEATURES, update(group_version=1))
    described = await standby.send(ApiKey.DESCRIBE_ACLS, acl_filter(None))

    assert created["results"][0]["error_code"] == ErrorCode.NOT_CONTROLLER
    assert updated["error_code"] == ErrorCode.NOT_CONTROLLER
    assert [resource["resource_name"] for resource in described["resources"]] == ["a"]
