"""Configs of groups. Source: GroupConfig.validate. Kafka's controller is the judge in `tests/integration/test_kafka_4_configs.py`."""

import pytest

from kafka_node.configs.described_configs import ConfigSource, Synonym, group_entry
from kafka_node.configs.documentation import group_documentation
from kafka_node.configs.group_configs import group_config_error
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_config_table import GROUP_CONFIGS

OWN = Settings(1, {"group.consumer.session.timeout.ms": "46000", "group.consumer.max.session.timeout.ms": "50000"})


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"consumer.session.timeout.ms": "50000"}, None),
        (
            {"consumer.session.timeout.ms": "50001"},
            "consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {"consumer.session.timeout.ms": "x"},
            "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            {"streams.num.standby.replicas": "9"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        ({"share.auto.offset.reset": "by_duration:P1DT2H3.5S"}, None),
        ({"colour": "red"}, "Unknown group config name: colour"),
    ],
)
def test_a_group_has_configs_within_the_bounds_of_the_node(configs: dict[str, str], message: str | None) -> None:
    """The bounds are settings, which may differ from Kafka's defaults."""
    assert group_config_error(configs, OWN) == message


@pytest.mark.parametrize("duration", ["", "P", "PT", "1H", "P-1D", "PT1X"])
def test_a_duration_is_one_of_iso_8601_and_not_negative(duration: str) -> None:
    """ShareGroupAutoOffsetResetStrategy.Validator, Duration.parse."""
    value = f"by_duration:{duration}"

    assert group_config_error({"share.auto.offset.reset": value}, OWN) == (
        f"Invalid value {value} for configuration share.auto.offset.reset: Invalid value `{value}` for configuration "
        "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def test_a_session_is_longer_than_the_interval_of_its_heartbeats() -> None:
    """Also where only one of them is set."""
    longer = Settings(1, {"group.consumer.max.heartbeat.interval.ms": "60000"})

    assert group_config_error({"consumer.heartbeat.interval.ms": "45000"}, longer) == (
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    )


def test_the_entry_of_a_group_lists_the_settings_of_the_node_behind_its_own_value() -> None:
    """ConfigHelper.createGroupConfigEntry."""
    own, inherited = (
        group_entry("consumer.session.timeout.ms", overrides, OWN)
        for overrides in ({"consumer.session.timeout.ms": "47000"}, {})
    )
    layers = (
        Synonym("group.consumer.session.timeout.ms", "46000", ConfigSource.STATIC_BROKER),
        Synonym("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    )

    assert (own.value, own.synonyms) == (
        "47000",
        (Synonym("consumer.session.timeout.ms", "47000", ConfigSource.GROUP), *layers),
    )
    assert (inherited.value, inherited.source, inherited.synonyms) == ("46000", ConfigSource.STATIC_BROKER, layers)


def test_a_stored_value_that_is_invalid_does_not_apply() -> None:
    """It may have been stored by another version."""
    assert group_entry("consumer.session.timeout.ms", {"consumer.session.timeout.ms": "x"}, OWN).value == "46000"


def test_every_config_of_a_group_has_a_text() -> None:
    """ConfigDef.ConfigKey.documentation."""
    assert [name for name in GROUP_CONFIGS if group_documentation(name) is None] == []
