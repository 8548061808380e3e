"""Rules of AlterClientQuotas and filters of DescribeClientQuotas (ZkAdminManager.alterClientQuotas, DynamicConfig, QuotaConfig)."""

import pytest

from controller_core.model.quota import DEFAULT, QuotaChange, QuotaEntity
from controller_core.rules.client_quotas import alter_quotas, java_whole, read_entity, read_filter
from kafka_node.configs.config_rules import ConfigType
from kafka_wire import ErrorCode, Failure

USER, CLIENT, IP = QuotaEntity(user="a"), QuotaEntity(client_id="c"), QuotaEntity(ip="10.0.0.1")
BOTH = QuotaEntity(user="a", client_id="c")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1024.0, "1024"),
        (1024.0000005, "1024"),
        (1023.9999995, "1024"),
        (0.0, "0"),
        (-1.0, None),
        (1e300, None),
        (1.5, None),
    ],
)
def test_a_byte_rate_is_a_whole_number(value: float, expected: str | None) -> None:
    """A request contains a double, which may be off by a millionth; Java's cast truncates, so no value below zero is valid."""
    result = alter_quotas(CLIENT, [QuotaChange("producer_byte_rate", value)], {})

    refused = Failure(ErrorCode.INVALID_REQUEST, "Configuration producer_byte_rate must be a LONG value")
    assert (refused if expected is None else {"producer_byte_rate": expected}) == result


@pytest.mark.parametrize(("value", "expected"), [(200.0, "200.0"), (12.5, "12.5"), (1e7, "1.0E7"), (1e-4, "1.0E-4")])
def test_a_percentage_is_formatted_as_by_java(value: float, expected: str) -> None:
    """Double.toString."""
    assert alter_quotas(USER, [QuotaChange("request_percentage", value)], {}) == {"request_percentage": expected}


@pytest.mark.parametrize(
    ("entity", "key", "value", "code", "message"),
    [
        (USER, "nonsense", 1.0, ErrorCode.INVALID_REQUEST, "Invalid configuration key nonsense"),
        (CLIENT, "connection_creation_rate", 1.0, ErrorCode.INVALID_REQUEST, "Invalid configuration key connection_creation_rate"),
        (CLIENT, "SCRAM-SHA-256", 1.0, ErrorCode.INVALID_REQUEST, "Invalid configuration key SCRAM-SHA-256"),
        (IP, "producer_byte_rate", 1.0, ErrorCode.INVALID_REQUEST, "Invalid configuration key producer_byte_rate"),
        (IP, "connection_creation_rate", 3e9, ErrorCode.INVALID_REQUEST, "Configuration connection_creation_rate must be a INT value"),
        (USER, "SCRAM-SHA-256", 1.0, ErrorCode.UNKNOWN_SERVER_ERROR, "SCRAM-SHA-256 is no quota: credentials are altered by AlterUserScramCredentials"),
        (IP, "connection_creation_rate", -1.0, ErrorCode.INVALID_REQUEST, "Configuration connection_creation_rate must be a INT value"),
    ],
)  # fmt: skip
def test_quotas_that_brokers_cannot_use_are_refused(
    entity: QuotaEntity, key: str, value: float, code: ErrorCode, message: str
) -> None:
    """Kafka's error codes, and its messages where it has any."""
    assert alter_quotas(entity, [QuotaChange(key, value)], {}) == Failure(code, message)


def test_unknown_keys_are_refused_until_they_are_removed() -> None:
    """DynamicConfig.validate checks all keys; a removal needs no known key."""
    for entity, config in (
        (USER, {"flavour": "1"}),
        (BOTH, {"SCRAM-SHA-256": "of the user, not of its client"}),
        (QuotaEntity(user=DEFAULT), {"SCRAM-SHA-256": "of no user"}),
        (CLIENT, {"producer_byte_rate": "much"}),
    ):
        result = alter_quotas(entity, [QuotaChange("consumer_byte_rate", 1.0)], config)
        assert isinstance(result, Failure)
        assert result.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert alter_quotas(entity, [QuotaChange(key, None) for key in config], config) == {}


def test_an_existing_rate_below_zero_is_refused() -> None:
    """ConfigDef.Range; a manually written value may be anything."""
    message = "Invalid value -1 for configuration connection_creation_rate: Value must be at least 0"
    assert alter_quotas(IP, [], {"connection_creation_rate": "-1"}) == Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def test_a_double_is_cast_as_by_java() -> None:
    """JLS 5.1.3."""
    values = (2.9, -2.9, 1e300, -1e300, float("nan"), float("inf"))
    expected = (2, -2, 2**63 - 1, -(2**63), 0, 2**63 - 1)
    assert tuple(java_whole(value, ConfigType.LONG) for value in values) == expected


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([], "Invalid empty client quota entity"),
        ([("flavour", "x")], "Unhandled client quota entity type: flavour"),
        ([("user", "")], "Empty user not supported"),
        ([("user", "a"), ("ip", "10.0.0.1")], "Invalid quota entity combination, IP entity should not be used with user/client ID entity."),
    ],
)  # fmt: skip
def test_an_invalid_entity_is_refused(named: list[tuple[str, str | None]], message: str) -> None:
    """ZkAdminManager.parseAndSanitizeQuotaEntity."""
    assert read_entity(named) == Failure(ErrorCode.INVALID_REQUEST, message)


def test_of_two_names_of_one_type_the_last_is_used() -> None:
    """AlterClientQuotasRequest.entries puts them into a map."""
    assert read_entity([("user", "a"), ("user", "b")]) == QuotaEntity(user="b")
    assert read_entity([("client-id", "c"), ("user", None)]) == QuotaEntity(user=DEFAULT, client_id="c")


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("user", 0, "a"), ("user", 2, None)], ErrorCode.INVALID_REQUEST, "Duplicate user filter component entity type"),
        ([("client-id", 1, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate client filter component entity type"),
        ([("ip", 1, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate ip filter component entity type"),
        ([("", 2, None)], ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type"),
        ([("x", 2, None)], ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'x' not supported"),
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST, "Invalid entity filter component combination, IP filter component should not be used with user or clientId filter component."),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST, "Unexpected match type 3 of the user, or no name to match exactly"),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST, "Unexpected match type 0 of the user, or no name to match exactly"),
    ],
)  # fmt: skip
def test_an_invalid_filter_is_refused(
    components: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    """ZkAdminManager.describeClientQuotas; for an invalid match type, where Java fails, the response contains the reason."""
    assert read_filter(components, strict=False) == Failure(code, message)
