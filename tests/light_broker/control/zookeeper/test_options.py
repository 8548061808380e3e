"""Settings of a light broker in ZooKeeper mode."""

import pytest

from kafka_node.authorization.acl import Operation
from kafka_node.authorization.needs import on_cluster
from kafka_node.configs.setting_rules import SettingError
from light_broker.control.zookeeper.controller_requests import VERSIONS
from light_broker.control.zookeeper.options import ZooKeeperOptions, read_options
from light_broker.control.zookeeper.rights import NEEDS

CONNECT = {"zookeeper.connect": "zk:2181/kafka"}


def test_the_defaults_are_those_of_kafka() -> None:
    """ZkConfigs: the timeout of the connection is that of the session."""
    assert read_options(CONNECT) == ZooKeeperOptions(
        connect="zk:2181/kafka",
        session_timeout_ms=18_000,
        connect_timeout_ms=18_000,
        shuts_down_controlled=True,
        shutdown_retries=3,
        shutdown_backoff_ms=5_000,
        controller_timeout_ms=30_000,
    )


def test_without_zookeeper_connect_there_are_none() -> None:
    """The broker is standalone, or of a KRaft cluster."""
    assert read_options({}) is None


@pytest.mark.parametrize("version", ["3.0", "3.6-IV2", "3.9"])
def test_supported_inter_broker_versions(version: str) -> None:
    """From 3.0 on the controller changes ISRs and gives producer ids."""
    assert read_options({**CONNECT, "inter.broker.protocol.version": version}) is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"inter.broker.protocol.version": "2.8"}, "supports 3.0 to 3.9"),
        ({"inter.broker.protocol.version": "4.0"}, "supports 3.0 to 3.9"),
        ({"inter.broker.protocol.version": "new"}, "a version such as 3.9"),
        ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl is not supported"),
        ({"zookeeper.ssl.client.enable": "true"}, "without TLS"),
        ({"zookeeper.metadata.migration.enable": "true"}, "migration"),
        ({"zookeeper.session.timeout.ms": "1"}, "zookeeper.session.timeout.ms"),
    ],
)
def test_what_is_not_supported_is_refused(given: dict[str, str], words: str) -> None:
    """The message names the setting."""
    with pytest.raises(SettingError, match=words):
        read_options({**CONNECT, **given})


def test_the_controllers_requests_need_cluster_action() -> None:
    """KafkaApis.authorizeClusterOperation(CLUSTER_ACTION)."""
    assert {key: NEEDS[key] for key in VERSIONS} == dict.fromkeys(VERSIONS, (on_cluster(Operation.CLUSTER_ACTION),))
