"""`steward controller unregister-broker`: the request reaches the controller, or the error names what to do."""

from collections.abc import AsyncIterator

import pytest

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.node import NodeSettings
from steward import unregister_command as module
from steward.options.security import BrokerSecurityOptions
from steward.unregister_command import UnregisterError, run_unregister, unregister
from tests.controller_core.shell.brokers.fake_broker import FakeBroker

SETTINGS = NodeSettings(client_id="tests")


class Cluster:
    """A broker, and a controller on another node."""

    def __init__(self, broker: FakeBroker, controller: FakeBroker) -> None:
        self.broker, self.controller = broker, controller
        self.controller_id = 1000
        self.error: Body = {}
        self.broker.ranges[ApiKey.METADATA] = (0, 12)
        self.controller.ranges[ApiKey.UNREGISTER_BROKER] = (0, 0)
        self.broker.react = self._metadata
        self.controller.react = self._unregister

    @property
    def bootstrap(self) -> str:
        """The broker's address."""
        return f"127.0.0.1:{self.broker.port}"

    async def _metadata(self, _key: ApiKey, _body: Body) -> Body | None:
        nodes = [(1, self.broker.port), (1000, self.controller.port)]
        brokers = [{"node_id": broker_id, "host": "127.0.0.1", "port": port, "rack": None} for broker_id, port in nodes]
        return {"brokers": brokers, "controller_id": self.controller_id, "topics": []}

    async def _unregister(self, _key: ApiKey, _body: Body) -> Body | None:
        return self.error


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Both on their own sockets."""
    brokers = [await FakeBroker().start() for _ in range(2)]
    yield Cluster(*brokers)
    for broker in brokers:
        await broker.close()


async def test_request_is_sent_to_the_controller(cluster: Cluster) -> None:
    """Brokers in ZooKeeper mode do not support the request."""
    await unregister(9, cluster.bootstrap, SETTINGS)

    assert cluster.controller.taken == [(ApiKey.UNREGISTER_BROKER, {"broker_id": 9})]


async def test_rejection_is_reported_with_error_name_and_message(cluster: Cluster) -> None:
    """The name can be searched for."""
    cluster.error = {"error_code": ErrorCode.INVALID_REQUEST, "error_message": "Broker 9 is running."}

    with pytest.raises(UnregisterError, match="INVALID_REQUEST: Broker 9 is running"):
        await unregister(9, cluster.bootstrap, SETTINGS)


async def test_missing_controller_is_an_error(cluster: Cluster) -> None:
    """The next one is elected within seconds, so the error advises a retry."""
    cluster.controller_id = -1

    with pytest.raises(UnregisterError, match="reports no active controller; try again"):
        await unregister(9, cluster.bootstrap, SETTINGS)


async def test_kafka_broker_as_controller_is_an_error(cluster: Cluster) -> None:
    """It supports no UnregisterBroker, and does not remember such logs either."""
    cluster.controller_id = 1

    with pytest.raises(UnregisterError, match="a Kafka broker may be the active controller"):
        await unregister(9, cluster.bootstrap, SETTINGS)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", ":9092"])
async def test_invalid_address_is_an_error(address: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UnregisterError, match="is not HOST:PORT"):
        await unregister(9, address, SETTINGS)


def test_unreachable_server_gives_exit_code_1_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr."""
    monkeypatch.setattr(module, "TIMEOUT_MS", 200)

    assert run_unregister(9, "127.0.0.1:1", "PLAINTEXT", BrokerSecurityOptions()) == 1
    assert capsys.readouterr().err.startswith("steward controller unregister-broker: no answer: ")


def test_sasl_without_credentials_is_an_error() -> None:
    """As in the sampler, before anything is sent."""
    with pytest.raises(ValueError, match="SASL_SSL needs a SASL mechanism"):
        run_unregister(9, "127.0.0.1:1", "SASL_SSL", BrokerSecurityOptions())
