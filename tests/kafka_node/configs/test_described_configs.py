"""Values of configs and where they come from. Source: ConfigHelper, DynamicBrokerConfig, LogConfig."""

import pytest

from kafka_node.configs.described_configs import (
    ALL_DYNAMIC,
    ConfigSource,
    Synonym,
    broker_entry,
    cluster_default_entry,
    topic_entry,
    topic_text,
    topic_value,
)
from kafka_node.configs.layered_settings import Settings
from light_broker.core.dynamic_settings import DYNAMIC_SETTINGS

FILE = Settings(1, {"log.retention.hours": "2", "log.segment.bytes": "5000000", "custom.name": "secret"})
DYNAMIC = FILE.with_dynamic(
    {"log.segment.bytes": "6000000", "log.retention.ms": "70"}, {"log.segment.bytes": "7000000"}
)


def test_the_own_dynamic_config_of_a_broker_comes_first() -> None:
    """Then that of all brokers, then the file, then Kafka's default."""
    assert DYNAMIC.number("log.segment.bytes") == 7000000
    assert DYNAMIC.number("log.retention.ms") == 70
    assert FILE.number("log.segment.bytes") == 5000000
    assert Settings(1).number("log.segment.bytes") == 1024 * 1024 * 1024


def test_a_topic_has_its_own_value_or_the_brokers_in_its_unit() -> None:
    """retention.ms is in milliseconds, log.retention.hours in hours; the finer unit of a broker comes first."""
    assert topic_text("retention.ms", {"retention.ms": "5"}, FILE) == "5"
    assert topic_text("retention.ms", {}, FILE) == "7200000"
    assert topic_text("retention.ms", {}, DYNAMIC) == "70"
    assert topic_text("retention.ms", {}, Settings(1)) == str(7 * 24 * 3_600_000)
    assert topic_text("flush.ms", {}, Settings(1, {"log.flush.scheduler.interval.ms": "9"})) == "9"


def test_an_unlimited_retention_is_unlimited_in_each_unit() -> None:
    """log.retention.hours=-1."""
    assert topic_value("retention.ms", {}, Settings(1, {"log.retention.hours": "-1"})) == -1


def test_the_entry_of_a_topic_lists_all_values_that_it_would_have() -> None:
    """In the order in which they apply (KIP-226)."""
    entry = topic_entry("segment.bytes", {"segment.bytes": "8000000"}, DYNAMIC)

    assert (entry.value, entry.source) == ("8000000", ConfigSource.TOPIC)
    assert entry.synonyms == (
        Synonym("segment.bytes", "8000000", ConfigSource.TOPIC),
        Synonym("log.segment.bytes", "7000000", ConfigSource.DYNAMIC_BROKER),
        Synonym("log.segment.bytes", "6000000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.segment.bytes", "5000000", ConfigSource.STATIC_BROKER),
        Synonym("log.segment.bytes", str(1024 * 1024 * 1024), ConfigSource.DEFAULT),
    )


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("log.segment.bytes", "7000000", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "70", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
        ("log.retention.minutes", None, ConfigSource.DEFAULT),
        ("num.partitions", "1", ConfigSource.DEFAULT),
        ("process.roles", None, ConfigSource.DEFAULT),
    ],
)
def test_the_entry_of_a_setting_has_its_value_and_source(name: str, value: str | None, source: ConfigSource) -> None:
    """The source of one of several units is that of this unit, also where another one applies (ConfigHelper.configSynonyms)."""
    entry = broker_entry(name, DYNAMIC, ())

    assert (entry.value, entry.source) == (value, source)


@pytest.mark.parametrize("name", ["ssl.key.password", "custom.name", "sasl.jaas.config", "delegation.token.secret.key"])
def test_secrets_and_names_of_an_unknown_type_are_not_shown(name: str) -> None:
    """Also in the synonyms."""
    entry = broker_entry(name, FILE, ())

    assert entry.is_sensitive
    assert (entry.value, {synonym.value for synonym in entry.synonyms} - {None}) == (None, set())


def test_only_settings_that_may_change_while_the_node_runs_are_writable() -> None:
    """Which these are depends on the node."""
    assert broker_entry("listeners", FILE, {"log.retention.ms"}).is_read_only
    assert not broker_entry("log.retention.ms", FILE, {"log.retention.ms"}).is_read_only


@pytest.mark.parametrize(
    ("name", "kafkas", "light_brokers"),
    [
        ("log.retention.ms", True, True),
        ("log.retention.hours", False, False),
        ("unclean.leader.election.enable", True, True),
        ("listeners", True, False),
        ("node.id", False, False),
    ],
)
def test_a_light_broker_applies_some_of_kafkas_dynamic_settings(name: str, kafkas: bool, light_brokers: bool) -> None:
    """DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS."""
    assert (name in ALL_DYNAMIC, name in DYNAMIC_SETTINGS) == (kafkas, light_brokers)
    assert DYNAMIC_SETTINGS < ALL_DYNAMIC


def test_the_default_of_all_brokers_is_an_entry_of_its_own() -> None:
    """The resource with the empty name."""
    entry = cluster_default_entry("log.segment.bytes", DYNAMIC, ())

    assert (entry.value, entry.source) == ("6000000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
