"""Throttles of replication: rates and throttled replicas (KIP-73). Source: ReplicationQuotaManagerTest."""

import pytest

from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import SettingError
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.dynamic_settings import dynamic_setting
from light_broker.core.replication_quota import (
    UNLIMITED,
    WINDOW_MS,
    WINDOWS,
    ReplicationQuota,
    Side,
    is_throttled,
    rate_of,
)

START_MS = 1_700_000_000_000


def test_the_rate_is_that_of_the_windows() -> None:
    """100 bytes a second: 100 in the first second are allowed, 101 are not; after another second they are."""
    quota = ReplicationQuota(100)
    quota.add(100, START_MS)
    assert not quota.is_exceeded(START_MS)
    quota.add(1, START_MS)
    assert quota.is_exceeded(START_MS)
    assert not quota.is_exceeded(START_MS + 2 * WINDOW_MS)


def test_old_windows_do_not_count() -> None:
    """A rate over eleven windows of a second."""
    quota = ReplicationQuota(100)
    quota.add(1_000_000, START_MS)
    assert quota.is_exceeded(START_MS + (WINDOWS - 1) * WINDOW_MS)
    assert not quota.is_exceeded(START_MS + WINDOWS * WINDOW_MS)


def test_without_a_rate_nothing_is_exceeded() -> None:
    """The default is the largest LONG."""
    quota = ReplicationQuota()
    quota.add(1 << 40, START_MS)
    assert not quota.is_exceeded(START_MS)


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("", False), ("*", True), ("0:1", True), ("0:2", False), ("1:1", False), ("1:2, 0:1", True)],
)
def test_a_topic_names_its_throttled_replicas(replicas: str, throttled: bool) -> None:
    """PARTITION:BROKER, separated by commas."""
    assert is_throttled(replicas, TopicPartition("orders", 0), 1) is throttled


def test_the_brokers_own_rate_comes_before_that_of_all_brokers() -> None:
    """Dynamic configs of brokers; the file cannot have them."""
    name = Side.LEADER.rate_setting
    settings = Settings.of_file(1, {name: "1"})

    assert rate_of(settings, Side.LEADER) == UNLIMITED
    assert rate_of(settings.with_dynamic({name: "5"}, {}), Side.LEADER) == 5
    assert rate_of(settings.with_dynamic({name: "5"}, {name: "7"}), Side.LEADER) == 7
    assert rate_of(settings.with_dynamic({name: "5"}, {}), Side.FOLLOWER) == UNLIMITED


def test_a_negative_rate_is_refused() -> None:
    """As in Kafka: at least 0, which stops what is throttled."""
    setting = dynamic_setting(Side.FOLLOWER.rate_setting)
    assert setting is not None
    with pytest.raises(SettingError, match="must be at least 0"):
        setting.read("-1")
