"""Settings of a light broker in ZooKeeper mode."""

from pathlib import Path

import pytest

from kafka_node.authorization.acl import Operation
from kafka_node.authorization.needs import on_cluster
from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.settings import TlsFiles
from light_broker.control.zookeeper.controller_requests import VERSIONS
from light_broker.control.zookeeper.options import ZooKeeperOptions, read_options
from light_broker.control.zookeeper.rights import NEEDS
from light_broker.control.zookeeper.security import ZooKeeperSecurity, ZooKeeperTls, read_security

CONNECT = {"zookeeper.connect": "zk:2181/kafka"}
TLS = {
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.keystore.location": "/tls/broker.pem",
    "zookeeper.ssl.truststore.location": "/tls/authority",
    "zookeeper.ssl.truststore.type": "PEM",
}


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


def test_tls_has_kafkas_names() -> None:
    """ZkConfigs: the type of a store is that of its file's name where it is not given; host names are verified by default."""
    files = TlsFiles(certificate=Path("/tls/broker.pem"), ca=Path("/tls/authority"))
    without_names = {**TLS, "zookeeper.ssl.endpoint.identification.algorithm": "", "zookeeper.set.acl": "true"}

    assert read_security({}) == ZooKeeperSecurity()
    assert read_security(TLS) == ZooKeeperSecurity(tls=ZooKeeperTls(files=files))
    assert read_security(without_names) == ZooKeeperSecurity(
        tls=ZooKeeperTls(files=files, verifies_host_names=False), set_acl=True
    )


@pytest.mark.parametrize("version", ["3.0", "3.6-IV2", "3.9"])
def test_supported_inter_broker_versions(version: str) -> None:
    """From 3.0 on the controller changes ISRs and gives producer ids."""
    assert read_options({**CONNECT, "inter.broker.protocol.version": version}) is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inter.broker.protocol.version": "2.8"}, "supports 3.0 to 3.9"),
        ({"inter.broker.protocol.version": "4.0"}, "supports 3.0 to 3.9"),
        ({"inter.broker.protocol.version": "new"}, "a version such as 3.9"),
        ({"zookeeper.set.acl": "true"}, "no identity in ZooKeeper"),
        ({"zookeeper.set.acl": "true", "zookeeper.ssl.client.enable": "true"}, "zookeeper.ssl.keystore.location"),
        (
            {**TLS, "zookeeper.ssl.keystore.location": "/k.jks"},
            "zookeeper.ssl.keystore.location is /k.jks: Steward reads PEM",
        ),
        ({**TLS, "zookeeper.ssl.keystore.type": "JKS"}, "zookeeper.ssl.keystore.type=PEM"),
        ({**TLS, "zookeeper.ssl.keystore.password": "secret"}, "zookeeper.ssl.keystore.password is not supported"),
        ({**TLS, "zookeeper.ssl.ocsp.enable": "true"}, "zookeeper.ssl.ocsp.enable is not supported"),
        ({**TLS, "zookeeper.ssl.endpoint.identification.algorithm": "LDAPS"}, "it is https, or empty"),
        ({"zookeeper.metadata.migration.enable": "true"}, "migration"),
        ({"zookeeper.session.timeout.ms": "1"}, "zookeeper.session.timeout.ms"),
    ],
)
def test_what_is_not_supported_is_refused(given: dict[str, str], message: str) -> None:
    """The message names the setting."""
    with pytest.raises(SettingError, match=message):
        read_options({**CONNECT, **given})


def test_the_controllers_requests_need_cluster_action() -> None:
    """KafkaApis.authorizeClusterOperation(CLUSTER_ACTION)."""
    assert {key: NEEDS[key] for key in VERSIONS} == dict.fromkeys(VERSIONS, (on_cluster(Operation.CLUSTER_ACTION),))
