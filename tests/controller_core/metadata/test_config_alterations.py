"""Changes of configs in KRaft mode (ConfigurationControlManager)."""

from uuid import UUID

import pytest

from controller_core.metadata.config_alterations import alter_configs
from controller_core.model.quorum_changes import ConfigsChanged
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import ELR_VERSION, METADATA_VERSION
from kafka_metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    ResourceType,
    TopicRecord,
)
from kafka_metadata.replay import replay
from kafka_node.configs.alterations import AlterOperation
from kafka_node.configs.layered_settings import Settings
from kafka_node.outcomes import Outcome
from kafka_wire import Body, ErrorCode, Failure

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
IMAGE = replay(
    MetadataImage(),
    [
        FeatureLevelRecord("metadata.version", 30),
        FeatureLevelRecord(ELR_VERSION, 1),
        RegisterBrokerRecord(1, UUID(int=1), 1, ()),
        TopicRecord("orders", UUID(int=2)),
        ConfigRecord(TOPIC, "orders", "retention.ms", "5"),
        ConfigRecord(TOPIC, "orders", "cleanup.policy", "delete"),
        ConfigRecord(BROKER, "", "min.insync.replicas", "2"),
    ],
    0,
)


def resource(kind: int, name: str, *operations: tuple[str, AlterOperation, str | None]) -> Body:
    """Return a resource of IncrementalAlterConfigs."""
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in operations]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def test_an_incremental_change_keeps_the_other_configs() -> None:
    """KIP-339: only differences are written."""
    changed = resource(
        TOPIC,
        "orders",
        ("segment.ms", AlterOperation.SET, "10000"),
        ("retention.ms", AlterOperation.DELETE, None),
        ("cleanup.policy", AlterOperation.APPEND, "compact"),
    )
    unchanged = resource(TOPIC, "orders", ("retention.ms", AlterOperation.SET, "5"))
    found = alter_configs(IMAGE, Settings(101), [changed, unchanged], incremental=True)

    assert found.outcomes == (None, None)
    assert found.changes == (
        ConfigsChanged(
            TOPIC, "orders", {"segment.ms": "10000", "cleanup.policy": "delete,compact", "retention.ms": None}
        ),
    )


def test_alter_configs_replaces_all_configs() -> None:
    """The legacy request names every config that remains."""
    found = alter_configs(
        IMAGE, Settings(101), [resource(TOPIC, "orders", ("retention.ms", AlterOperation.SET, "6"))], incremental=False
    )

    assert found.changes == (ConfigsChanged(TOPIC, "orders", {"retention.ms": "6", "cleanup.policy": None}),)


SET = AlterOperation.SET


def cordon(value: str | None, current: str | None, *, level: int = 30, is_forwarded: bool = False) -> Outcome:
    """Change the cordoned directories of broker 1 in a cluster of a metadata.version; return the outcome."""
    records: list[MetadataRecord] = [FeatureLevelRecord(METADATA_VERSION, level)]
    if current is not None:
        records.append(ConfigRecord(BROKER, "1", "cordoned.log.dirs", current))
    image = replay(IMAGE, records)
    operation = ("cordoned.log.dirs", AlterOperation.DELETE if value is None else SET, value)
    found = alter_configs(
        image, Settings(101), [resource(BROKER, "1", operation)], incremental=True, is_forwarded=is_forwarded
    )
    return found.outcomes[0]


@pytest.mark.parametrize("value", ["/b", "/b, /a", "", None])
def test_a_controller_uncordons_directories_of_a_broker(value: str | None) -> None:
    """KIP-1066: a broker that is gone cannot do it itself."""
    assert cordon(value, "/a,/b") is None


@pytest.mark.parametrize("current", [None, "/a"])
def test_only_a_broker_cordons_its_directories(current: str | None) -> None:
    """The controller does not know their paths (INVALID_CORDONED_LOG_DIRS_ERROR); a broker has judged what it forwards."""
    refused = cordon("/a,/b", current)

    assert isinstance(refused, Failure)
    assert (refused.code, "must be a subset" in refused.message) == (ErrorCode.INVALID_CONFIG, True)
    assert cordon("/a,/b", current, is_forwarded=True) is None


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_directories_are_cordoned_from_metadata_version_4_3_on(is_forwarded: bool) -> None:
    """Brokers before 4.3 do not know the config (DISABLED_CORDONED_LOG_DIRS_ERROR)."""
    refused = cordon("/a", None, level=29, is_forwarded=is_forwarded)

    assert isinstance(refused, Failure)
    assert "requires metadata.version >= 4.3-IV0" in refused.message


REFUSED = {
    "an unknown topic": (resource(TOPIC, "none", ("retention.ms", SET, "5")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "a wrong value": (resource(TOPIC, "orders", ("retention.ms", SET, "abc")), ErrorCode.INVALID_CONFIG),
    "an unknown name": (resource(TOPIC, "orders", ("colour", SET, "red")), ErrorCode.INVALID_CONFIG),
    "a null value": (resource(TOPIC, "orders", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
    "a config twice": (
        resource(TOPIC, "orders", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
        ErrorCode.INVALID_REQUEST,
    ),
    "an append to a number": (
        resource(TOPIC, "orders", ("retention.ms", AlterOperation.APPEND, "5")),
        ErrorCode.INVALID_CONFIG,
    ),
    "a wrong value of an unknown topic": (
        resource(TOPIC, "none", ("retention.ms", SET, "x")),
        ErrorCode.INVALID_CONFIG,
    ),
    "a topic with an illegal name": (
        resource(TOPIC, "a b", ("retention.ms", SET, "5")),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    "the default of all topics": (resource(TOPIC, "", ("retention.ms", SET, "5")), ErrorCode.INVALID_REQUEST),
    "a value that no record can have": (
        resource(BROKER, "1", ("log.dirs", SET, "x" * 32_768)),
        ErrorCode.INVALID_CONFIG,
    ),
    "a group beyond the bounds": (
        resource(ResourceType.GROUP, "app", ("consumer.session.timeout.ms", SET, "1")),
        ErrorCode.INVALID_CONFIG,
    ),
    "the default of all groups": (
        resource(ResourceType.GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
        ErrorCode.INVALID_REQUEST,
    ),
    "a subscription with a wrong interval": (
        resource(ResourceType.CLIENT_METRICS, "sub", ("interval.ms", SET, "1")),
        ErrorCode.INVALID_REQUEST,
    ),
    "an append to a subscription": (
        resource(ResourceType.CLIENT_METRICS, "sub", ("metrics", AlterOperation.APPEND, "a")),
        ErrorCode.INVALID_CONFIG,
    ),
    "a broker with a negative id": (resource(BROKER, "-1", ("log.retention.ms", SET, "5")), ErrorCode.INVALID_REQUEST),
    "a broker that is no number": (resource(BROKER, "one", ("log.retention.ms", SET, "5")), ErrorCode.INVALID_REQUEST),
    "an unregistered broker": (
        resource(BROKER, "9", ("log.retention.ms", SET, "5")),
        ErrorCode.BROKER_ID_NOT_REGISTERED,
    ),
    "min.insync.replicas of one broker": (
        resource(BROKER, "1", ("min.insync.replicas", SET, "1")),
        ErrorCode.INVALID_CONFIG,
    ),
    "the cluster without min.insync.replicas": (
        resource(BROKER, "", ("min.insync.replicas", AlterOperation.DELETE, None)),
        ErrorCode.INVALID_CONFIG,
    ),
}


@pytest.mark.parametrize(("wanted", "code"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_resource_is_refused_and_the_others_change(wanted: Body, code: ErrorCode) -> None:
    """Resources of a request are independent (ConfigurationControlManager.incrementalAlterConfigs)."""
    right = resource(TOPIC, "orders", ("retention.ms", SET, "7"))
    found = alter_configs(IMAGE, Settings(101), [wanted, right], incremental=True)

    assert [outcome and outcome.code for outcome in found.outcomes] == [code, None]
    assert found.changes == (ConfigsChanged(TOPIC, "orders", {"retention.ms": "7"}),)


def test_groups_and_subscriptions_have_configs_without_being_known() -> None:
    """A subscription is its configs, and a group may be created later (KIP-714, KIP-848)."""
    subscription = resource(ResourceType.CLIENT_METRICS, "sub", ("interval.ms", SET, "1000"))
    group = resource(ResourceType.GROUP, "app", ("consumer.session.timeout.ms", SET, "50000"))
    found = alter_configs(IMAGE, Settings(101), [subscription, group], incremental=True)

    assert found.changes == (
        ConfigsChanged(ResourceType.CLIENT_METRICS, "sub", {"interval.ms": "1000"}),
        ConfigsChanged(ResourceType.GROUP, "app", {"consumer.session.timeout.ms": "50000"}),
    )


def test_the_bounds_of_groups_are_settings_of_the_controller() -> None:
    """ControllerConfigurationValidator."""
    group = resource(ResourceType.GROUP, "app", ("consumer.session.timeout.ms", SET, "50000"))
    settings = Settings(101, {"group.consumer.max.session.timeout.ms": "46000"})

    assert [
        outcome and outcome.code for outcome in alter_configs(IMAGE, settings, [group], incremental=True).outcomes
    ] == [ErrorCode.INVALID_CONFIG]
