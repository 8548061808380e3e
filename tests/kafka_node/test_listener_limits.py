"""Limits of the listeners from Kafka's settings of the network."""

import re

import pytest

from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import SettingError
from kafka_node.listener_limits import OVERRIDES, DynamicLimits, ListenerLimits, listener_limits
from kafka_wire.net.limits import ServerLimits
from light_broker.shell.settings_reading import read_settings
from tests.waiting import until


def limits(values: dict[str, str], *listeners: str) -> ListenerLimits:
    """Return the limits of a file's settings."""
    return listener_limits(Settings(1, values), listeners or ("PLAINTEXT",))


def rates(found: ListenerLimits) -> dict[str, float]:
    """Return connections a second by listener."""
    return {name: limits.max_connection_creation_rate for name, limits in found.by_listener.items()}


def test_a_listener_has_kafkas_defaults() -> None:
    """SocketServerConfigs: no limit of connections, and none of their rate."""
    found = limits({})

    assert found.by_listener["PLAINTEXT"] == ServerLimits(max_frame_bytes=104857600, max_connections=2**31 - 1)
    assert (found.quotas.creation_rate.limit, found.quotas.max_per_address) == (2**31 - 1, 2**31 - 1)


def test_a_listener_has_its_own_limits_or_those_of_the_broker() -> None:
    """max.connection.creation.rate and max.connections (KIP-402, KIP-612); the prefix has the listener's name in lower case."""
    own = {"listener.name.client.max.connection.creation.rate": "5", "listener.name.client.max.connections": "7"}
    found = limits({"max.connection.creation.rate": "20", "max.connections": "30", **own}, "CLIENT", "BROKER")

    assert rates(found) == {"CLIENT": 5, "BROKER": 20}
    assert {name: limits.max_connections for name, limits in found.by_listener.items()} == {"CLIENT": 7, "BROKER": 30}
    assert (found.quotas.creation_rate.limit, found.quotas.max_connections) == (20, 30)


def test_the_own_limits_of_a_listener_are_known_names() -> None:
    """They are not in the warning of unknown names."""
    read = read_settings({"node.id": "1", "listener.name.plaintext.max.connection.creation.rate": "5"})

    assert read.unknown == ()


def test_an_override_may_have_the_name_of_a_host() -> None:
    """It counts for the host's first address (ConnectionQuotas, InetAddress.getByName)."""
    found = limits({OVERRIDES: "localhost:3, 10.0.0.1:4,[::1]:5"})

    assert found.quotas.overrides == {"127.0.0.1": 3, "10.0.0.1": 4, "::1": 5}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {OVERRIDES: "no-such-host.invalid:5"},
            f"{OVERRIDES} has the host 'no-such-host.invalid', whose address is not",
        ),
        ({OVERRIDES: "10.0.0.1"}, f"{OVERRIDES} has '10.0.0.1', which is not HOST:LIMIT."),
        ({OVERRIDES: f"10.0.0.1:{'9' * 5000}"}, "which is not HOST:LIMIT."),
        ({OVERRIDES: "10.0.0.1:many"}, f"{OVERRIDES} has '10.0.0.1:many', which is not HOST:LIMIT."),
        ({OVERRIDES: f"{'x' * 64}.example:5"}, f"{OVERRIDES} has the host '{'x' * 64}.example', whose address is not"),
        ({"max.connection.creation.rate": "0"}, "max.connection.creation.rate is 0, which accepts no connection."),
        ({"max.connections": "0"}, "max.connections is 0, which accepts no connection."),
        (
            {"listener.name.plaintext.max.connections": "-1"},
            "Invalid value -1 for configuration max.connections: Value must be at least 0",
        ),
    ],
)
def test_an_invalid_limit_ends_the_start_with_a_message(values: dict[str, str], message: str) -> None:
    """Host names that have no address among them (Kafka: UnknownHostException)."""
    with pytest.raises(SettingError, match=re.escape(message)):
        limits(values)


class FakeServer:
    """Keeps the limits that it gets."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def change_limits(self, limits: ServerLimits) -> None:
        """Note the limit of connections."""
        self.found.append(limits.max_connections)


async def test_changed_settings_apply_while_the_process_runs() -> None:
    """DynamicBrokerConfig: limits of all nodes and of this one; a listener's own limit in the file stays."""
    file = Settings(1, {"max.connections": "9", "listener.name.own.max.connections": "3"})
    current = listener_limits(file, ("PLAINTEXT", "OWN"))
    plain, own = FakeServer(), FakeServer()
    dynamic = DynamicLimits(current, {"PLAINTEXT": plain, "OWN": own})

    dynamic.follow(file.with_dynamic({"max.connections": "8"}, {"max.connections.per.ip": "2"}))
    await until(lambda: bool(plain.found))
    dynamic.follow(file.with_dynamic({"max.connections": "7"}, {}))
    await until(lambda: len(plain.found) == 2)

    assert (plain.found, own.found) == ([8, 7], [3, 3])
    assert (current.quotas.max_connections, current.quotas.max_per_address) == (7, 2**31 - 1)


async def test_settings_that_no_limit_can_have_are_logged_and_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A broker accepts them: whether a host is known may differ between nodes."""
    file = Settings(1, {"max.connections": "9"})
    current, server = listener_limits(file, ("PLAINTEXT",)), FakeServer()
    dynamic = DynamicLimits(current, {"PLAINTEXT": server})

    dynamic.follow(file.with_dynamic({OVERRIDES: "no host:5"}, {}))
    await until(lambda: bool(caplog.records))

    assert [record.message for record in caplog.records] == ["Limits of connections did not change"]
    assert (current.quotas.max_connections, server.found) == (9, [])
