"""Validation of topic configs with the messages of a Kafka 3.9 broker (reason InvalidConfig)."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.configs.config_rules import ConfigKey, InvalidValue
from kafka_node.configs.topic_config_table import ROWS, TOPIC_CONFIGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS as TOPIC_CONFIGS_4
from kafka_node.configs.topic_configs import ConfigContext, config_value, topic_config_error

REMOTE = {"remote.storage.enable": "true"}

THROTTLED_WORDS = (
    "Invalid value [1:2, x] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must"
    " be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("foo", "1", "Unknown topic config name: foo"),
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("segment.bytes", "13", "Invalid value 13 for configuration segment.bytes: Value must be at least 14"),
        (
            "min.cleanable.dirty.ratio",
            "1e7",
            "Invalid value 1.0E7 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "cleanup.policy",
            "delete, shred",
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "message.format.version",
            "9.9",
            "Invalid value 9.9 for configuration message.format.version: Version 9.9 is not a valid version",
        ),
        (
            "leader.replication.throttled.replicas",
            "1:2, x",
            THROTTLED_WORDS,
        ),
    ],
)
def test_an_invalid_config_is_refused_with_kafkas_message(name: str, text: str, message: str) -> None:
    """LogConfig.validate; `judged` compares with Kafka itself."""
    error = topic_config_error({name: text})

    assert error is not None
    assert message == error.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "-1"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("message.format.version", "0.10.0.1"),
        ("message.format.version", "3.0-IV1"),
        ("follower.replication.throttled.replicas", "*"),
        ("compression.gzip.level", "-1"),
    ],
)
def test_a_valid_config_is_accepted(name: str, text: str) -> None:
    """Everything that Kafka accepts is accepted."""
    assert topic_config_error({name: text}) is None


def test_kafkas_defaults_are_valid() -> None:
    """The table is generated; an empty map is valid."""
    assert [row.name for row in ROWS if isinstance(row.read(row.default), InvalidValue)] == []


@pytest.mark.parametrize("zookeeper", [True, False], ids=["ZooKeeper", "KRaft"])
@pytest.mark.parametrize("table", [TOPIC_CONFIGS, TOPIC_CONFIGS_4], ids=["3.9", "4.3"])
def test_kafkas_defaults_are_valid_together(table: Mapping[str, ConfigKey], zookeeper: bool) -> None:
    """So a topic without configs of its own needs no check. A config that is given as its default makes all be checked."""
    given = {"retention.ms": table["retention.ms"].default}

    assert topic_config_error(given, ConfigContext(table=table, zookeeper=zookeeper)) is None


def test_the_first_error_is_the_first_in_the_tables_order() -> None:
    """ConfigDef.parse checks its keys in the order of their definition."""
    error = topic_config_error({"preallocate": "x", "segment.bytes": "x"})

    assert error is not None
    assert error.message == "Invalid value x for configuration segment.bytes: Not a number of type INT"


def test_null_values_are_checked_before_unknown_names_and_these_before_values() -> None:
    """ZkAdminManager.createTopics checks for nulls, LogConfig.validate first names, then values."""
    null = topic_config_error({"foo": "1", "segment.ms": None, "retention.ms": None})
    unknown = topic_config_error({"retention.ms": "abc", "zoo": "1", "foo": "1"})

    assert null is not None
    assert unknown is not None
    assert null.message == "Null value not supported for topic configs: segment.ms,retention.ms"
    assert unknown.message == "Unknown topic config name: foo"


def test_the_compaction_lag_is_checked_with_the_brokers_defaults() -> None:
    """LogConfig.validateValues, on top of the brokers' defaults."""
    setting = ConfigContext(broker_defaults={"max.compaction.lag.ms": "5"})

    error = topic_config_error({"min.compaction.lag.ms": "6"}, setting)

    assert error is not None
    assert error.message == "conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)"


@pytest.mark.parametrize(
    ("configs", "setting", "message"),
    [
        (
            {"remote.log.copy.disable": "true"},
            ConfigContext(),
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode.",
        ),
        (
            REMOTE,
            ConfigContext(),
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ),
        (
            {**REMOTE, "cleanup.policy": "compact"},
            ConfigContext(remote_storage=True),
            "Remote log storage is unsupported for the compacted topics",
        ),
        (
            {**REMOTE, "retention.ms": "10", "local.retention.ms": "11"},
            ConfigContext(remote_storage=True),
            "Invalid value 11 for configuration local.retention.ms: Value must not be more than retention.ms property value: 10",
        ),
        (
            {**REMOTE, "retention.bytes": "10", "local.retention.bytes": "-1"},
            ConfigContext(remote_storage=True),
            "Invalid value -1 for configuration local.retention.bytes: Value must not be -1 as retention.bytes value is set as 10.",
        ),
    ],
)
def test_tiered_storage_is_refused_as_by_a_broker(
    configs: dict[str, str], setting: ConfigContext, message: str
) -> None:
    """LogConfig.validateTopicLogConfigValues (KIP-405, KIP-950)."""
    error = topic_config_error(configs, setting)

    assert error is not None
    assert message == error.message


def test_disabling_tiered_storage_needs_consent_to_delete() -> None:
    """LogConfig.validateTurningOffRemoteStorageWithDelete; only KRaft's controller passes the existing map."""
    setting = ConfigContext(existing=REMOTE, remote_storage=True, zookeeper=False)

    error = topic_config_error({"remote.storage.enable": "false"}, setting)

    assert error is not None
    assert error.message.startswith("It is invalid to disable remote storage without deleting remote data.")
    assert topic_config_error({"remote.log.delete.on.disable": "true"}, setting) is None


def test_a_config_value_is_the_topics_or_the_brokers_or_kafkas() -> None:
    """LogConfig.fromProps: overrides on top of defaults."""
    assert not config_value("unclean.leader.election.enable", {})
    assert config_value("unclean.leader.election.enable", {"unclean.leader.election.enable": "true"})
    assert config_value("min.insync.replicas", {"min.insync.replicas": "0"}) == InvalidValue(
        "min.insync.replicas", "0", "Value must be at least 1"
    )


@given(st.dictionaries(st.sampled_from(sorted(TOPIC_CONFIGS)) | st.text(), st.none() | st.text()))
def test_any_config_map_is_accepted_or_refused(configs: dict[str, str | None]) -> None:
    """Users may write anything."""
    error = topic_config_error(configs)

    assert error is None or error.message
