"""Changes of client quotas. Source: ClientQuotaControlManager of Kafka."""

import pytest

from controller_core.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from controller_core.model.quota import DEFAULT, QuotaChange, QuotaEntity
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ClientQuotaRecord, QuotaEntityPart
from kafka_metadata.replay import replay
from kafka_wire import ErrorCode, Failure

ALICE = QuotaEntity(user="alice", client_id=DEFAULT)
PARTS = (QuotaEntityPart("user", "alice"), QuotaEntityPart("client-id", None))
PRESENT = ClientQuotaRecord(PARTS, "producer_byte_rate", 1000.0)
IMAGE = replay(MetadataImage(), [PRESENT])


def altered(*changes: QuotaChange, entity: QuotaEntity = ALICE) -> QuotaAlteration:
    """Return changes of one entity."""
    return QuotaAlteration(entity, changes)


def test_only_values_that_change_are_written() -> None:
    """ClientQuotaControlManager.alterClientQuotaEntity; a quota that is not set is not removed."""
    wanted = altered(
        QuotaChange("producer_byte_rate", 1000.0),
        QuotaChange("consumer_byte_rate", 2000.0),
        QuotaChange("request_percentage", None),
    )

    made = alter_client_quotas(IMAGE, [wanted], validate_only=False)

    assert made.records == (ClientQuotaRecord(PARTS, "consumer_byte_rate", 2000.0),)
    assert made.reply == {ALICE: None}


def test_a_quota_is_removed() -> None:
    """The entity leaves the image with its last quota."""
    made = alter_client_quotas(IMAGE, [altered(QuotaChange("producer_byte_rate", None))], validate_only=False)

    assert replay(IMAGE, made.records).client_quotas == {}


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        (ALICE, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (ALICE, "producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        (ALICE, "producer_byte_rate", 1e20, "Proposed value for producer_byte_rate is too large for a LONG."),
        (
            QuotaEntity(ip="10.0.0.1"),
            "connection_creation_rate",
            3e9,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_invalid_value_is_refused(entity: QuotaEntity, key: str, value: float, message: str) -> None:
    """ClientQuotaControlManager.validateQuotaKeyValue."""
    made = alter_client_quotas(MetadataImage(), [altered(QuotaChange(key, value), entity=entity)], validate_only=False)

    assert made.records == ()
    assert made.reply == {entity: Failure(ErrorCode.INVALID_REQUEST, message)}


def test_an_entity_that_is_listed_twice_fails_but_keeps_its_first_alteration() -> None:
    """ClientQuotaControlManager.alterClientQuotas."""
    first, second = altered(QuotaChange("request_percentage", 5.0)), altered(QuotaChange("request_percentage", 6.0))

    made = alter_client_quotas(MetadataImage(), [first, second], validate_only=False)

    assert made.records == (ClientQuotaRecord(PARTS, "request_percentage", 5.0),)
    assert made.reply[ALICE].message == (
        "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice, client-id=null})"
    )


def test_a_key_that_is_listed_twice_refuses_its_entity() -> None:
    """ClientQuotaControlManager.alterClientQuotas."""
    twice = altered(QuotaChange("request_percentage", 5.0), QuotaChange("request_percentage", None))

    assert alter_client_quotas(MetadataImage(), [twice], validate_only=False).records == ()


def test_a_request_that_only_validates_writes_nothing() -> None:
    """AlterClientQuotas, validate_only."""
    made = alter_client_quotas(IMAGE, [altered(QuotaChange("request_percentage", 5.0))], validate_only=True)

    assert made.records == ()
    assert made.reply == {ALICE: None}
