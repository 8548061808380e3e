"""Settings of a broker in a cluster with KRaft controllers."""

import pytest

from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.endpoints import Address
from kafka_node.security.settings import SecurityProtocol
from light_broker.control.kraft.options import KRaftOptions, read_options
from light_broker.shell.settings_reading import read_settings

VALUES = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "a:9093,b:9093",
    "listeners": "CLIENT://127.0.0.1:9092",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENT",
    "log.dirs": "data",
}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="broker" password="secret";'


def options(**values: str) -> KRaftOptions:
    """Return the options of a file; `_` is a dot in its names."""
    found = read_options({**VALUES, **{name.replace("_", "."): value for name, value in values.items()}}, 2)
    assert found is not None
    return found


def test_without_roles_there_are_no_kraft_controllers() -> None:
    """The file of a broker in ZooKeeper mode, or of one that is standalone."""
    assert read_options({"node.id": "2"}, 2) is None


def test_defaults_are_those_of_kafka() -> None:
    """BrokerHeartbeat every 2 s, a minute for the registration."""
    found = options()
    assert found.servers == (Address("a", 9093), Address("b", 9093))
    assert (found.heartbeat_interval_ms, found.registration_timeout_ms, found.request_timeout_ms) == (
        2000,
        60_000,
        2000,
    )
    assert (found.fetch_max_bytes, found.fetch_snapshot_max_bytes, found.retry_backoff_ms) == (1 << 20, 1 << 20, 20)


def test_static_voters_are_asked_and_known_by_id() -> None:
    """controller.quorum.voters (kraft.version 0)."""
    values = {**VALUES, "controller.quorum.voters": "101@a:9093,102@[::1]:9094"}
    del values["controller.quorum.bootstrap.servers"]
    found = read_options(values, 2)

    assert found is not None
    assert found.voters == {101: Address("a", 9093), 102: Address("::1", 9094)}
    assert found.servers == (Address("a", 9093), Address("::1", 9094))


def test_the_controllers_listener_has_its_own_login() -> None:
    """sasl.mechanism.controller.protocol, with the JAAS settings of that listener; a broker needs no certificate for it."""
    found = options(
        listener_security_protocol_map="CLIENT:PLAINTEXT,CONTROLLER:SASL_SSL",
        sasl_mechanism_controller_protocol="PLAIN",
        listener_name_controller_plain_sasl_jaas_config=PLAIN,
    )
    assert found.protocol is SecurityProtocol.SASL_SSL
    assert found.security.login is not None
    assert (found.security.login.username, found.security.tls.certificate) == ("broker", None)


def test_a_read_file_has_no_unused_names_of_the_quorum() -> None:
    """They are read by this mode, and by no other."""
    read = read_settings({**VALUES, "broker.heartbeat.interval.ms": "1000", "controller.quorum.append.linger.ms": "25"})

    assert (read.unknown, read.unused) == ((), ("controller.quorum.append.linger.ms",))
    assert read.settings.kraft is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"process.roles": "broker,controller"}, "run the controller as a process of its own, `steward quorum`"),
        ({"controller.listener.names": ""}, "controller.listener.names must name the listener of the controllers"),
        ({"controller.quorum.bootstrap.servers": ""}, "Set controller.quorum.bootstrap.servers"),
        ({"controller.quorum.voters": "2@a:9093"}, "node id 2 must not be among the voters"),
        ({"controller.quorum.voters": "a:9093"}, "'a:9093' is not ID@HOST:PORT"),
        ({"listener.security.protocol.map": "CLIENT:PLAINTEXT"}, "no security protocol for the listener CONTROLLER"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, str], message: str) -> None:
    """The error has the setting, and what to do."""
    with pytest.raises(SettingError) as raised:
        read_options({**VALUES, **values}, 2)
    assert message in str(raised.value)
