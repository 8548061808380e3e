"""A broker's settings from Kafka's server.properties."""

from pathlib import Path

import pytest

from kafka_node.authorization.authorizer import Rules
from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.endpoints import Endpoint
from kafka_node.security.settings import SecurityProtocol
from light_broker.shell.settings_reading import BrokerSettings, read_settings, read_settings_file

ONE = {"node.id": "1"}
PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL


def settings(**values: str) -> BrokerSettings:
    """Return the settings of a file; `_` is a dot in its names."""
    return read_settings(ONE | {name.replace("_", "."): value for name, value in values.items()}).settings


@pytest.mark.shows("F64")
def test_kafkas_example_of_a_server_is_read_as_it_is(tmp_path: Path) -> None:
    """config/server.properties of Kafka 4.3: a combined node, whose controller listener a standalone broker does not open."""
    file = tmp_path / "server.properties"
    file.write_text(
        "# The role of this server.\n"
        "process.roles=broker,controller\n"
        "node.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "inter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
        "num.network.threads=3\n"
        "log.dirs=/tmp/kraft-combined-logs\n"
        "num.partitions=1\n"
        "log.retention.hours=168\n"
    )

    read = read_settings_file(file, {"num.partitions": "3"}, is_standalone=True)

    assert read.settings.listeners == (Endpoint("PLAINTEXT", PLAINTEXT, "", 9092),)
    assert read.settings.advertised_listeners == (Endpoint("PLAINTEXT", PLAINTEXT, "localhost", 9092),)
    assert read.settings.log_directories == (Path("/tmp/kraft-combined-logs"),)
    assert read.settings.values.number("num.partitions") == 3
    assert read.unused == ("controller.listener.names", "controller.quorum.bootstrap.servers")
    assert read.unknown == ()


def test_names_that_kafka_does_not_have_are_reported() -> None:
    """Settings of ZooKeeper mode among them, on a broker that is standalone."""
    values = ONE | {"zookeeper.connect": "a:1", "log.retention.weeks": "1", "quota.window.num": "5"}
    read = read_settings(values, is_standalone=True)

    assert (read.unknown, read.unused) == (("log.retention.weeks", "zookeeper.connect"), ("quota.window.num",))


def test_a_listener_has_the_defaults_of_kafka() -> None:
    """PLAINTEXT://:9092, advertised under the name of the machine."""
    found = settings()

    assert found.listeners == (Endpoint("PLAINTEXT", PLAINTEXT, "", 9092),)
    assert found.inter_broker_listener == "PLAINTEXT"
    assert found.authorizer is None


def test_an_address_on_all_interfaces_is_not_advertised() -> None:
    """Clients cannot connect to 0.0.0.0."""
    found = settings(listeners="PLAINTEXT://0.0.0.0:9092")

    assert found.advertised_listeners == (Endpoint("PLAINTEXT", PLAINTEXT, "", 9092),)
    with pytest.raises(SettingError, match=r"advertised.listeners cannot use 0.0.0.0"):
        settings(advertised_listeners="PLAINTEXT://0.0.0.0:9092")


def test_the_authorizer_has_kafkas_rules() -> None:
    """Super users are separated by semicolons, since names of certificates contain commas."""
    found = read_settings(
        ONE
        | {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:CN=ops,O=example",
            "allow.everyone.if.no.acl.found": "true",
        }
    )

    assert found.settings.authorizer == Rules(frozenset({"User:admin", "User:CN=ops,O=example"}), True)
    assert found.unknown == ()


@pytest.mark.shows("F64")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "com.example.MyAuthorizer"),
        ("create.topic.policy.class.name", "com.example.MyPolicy"),
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter,com.example.Mine"),
        ("principal.builder.class", "com.example.Mine"),
        ("client.quota.callback.class", "com.example.Mine"),
        ("config.providers", "file"),
        ("remote.log.storage.system.enable", "true"),
        ("process.roles", "controller"),
        ("num.partitions", "many"),
        ("log.cleanup.policy", "forget"),
        ("broker.id", "2"),
        ("super.users", "admin"),
    ],
)
def test_settings_that_the_broker_cannot_apply_stop_the_start_by_name(name: str, value: str) -> None:
    """Java classes, parts that the broker lacks, invalid values, two different ids."""
    enabled = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

    with pytest.raises(SettingError, match=name.replace(".", r"\.")):
        read_settings(ONE | (enabled if name == "super.users" else {}) | {name: value})


def test_classes_of_kafka_that_the_broker_has_itself_are_accepted() -> None:
    """They are the defaults, or have an equivalent."""
    found = read_settings(
        ONE
        | {
            "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        }
    )

    assert found.settings.authorizer == Rules()


def test_the_listener_of_brokers_must_be_advertised() -> None:
    """By name or by security protocol, not both."""
    two = {"listeners": "A://:1,B://:2", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}

    assert read_settings(ONE | two | {"inter.broker.listener.name": "B"}).settings.inter_broker_listener == "B"
    with pytest.raises(SettingError, match="C is not there"):
        read_settings(ONE | two | {"inter.broker.listener.name": "C"})
    with pytest.raises(SettingError, match="Only one of"):
        read_settings(ONE | two | {"inter.broker.listener.name": "A", "security.inter.broker.protocol": "SSL"})


def test_a_missing_id_is_named() -> None:
    """node.id has no default."""
    with pytest.raises(SettingError, match=r"node\.id"):
        read_settings({})
