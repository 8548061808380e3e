"""API versions are read once per broker incarnation, and a hung broker delays clients only briefly."""

import asyncio

import pytest

from controller_core.shell.front import relay
from controller_core.shell.front.relay import SharedVersions
from kafka_node.versions import NO_BROKER
from kafka_wire import ApiKey
from kafka_wire.net.server import serve
from tests.controller_core.shell.front.fakes import BROKER_RANGES


@pytest.fixture(autouse=True)
def _patient(monkeypatch) -> None:
    """Wait for a live broker on a busy machine too: after the product's second, the versions of before would be the result."""
    monkeypatch.setattr(relay, "VERSIONS_TIMEOUT_MS", 30_000)


def _versions_of(brokers) -> SharedVersions:
    return SharedVersions(lambda: [broker.endpoint for broker in brokers], client_id="tests")


def _request_count(broker) -> int:
    """Count the connections for ApiVersions requests."""
    return len(broker.peers)


async def test_each_broker_is_requested_once(start_brokers) -> None:
    """Also when many clients connect at the same time."""
    brokers = await start_brokers(1, 2)
    versions = _versions_of(brokers)
    found = await asyncio.gather(*(versions.shared() for _ in range(10)))
    await versions.shared()

    assert [versions.ranges[ApiKey.FETCH] for versions in found] == [(0, 17)] * 10
    assert [_request_count(broker) for broker in brokers] == [1, 1]


async def test_mixed_cluster_offers_the_common_versions(start_brokers) -> None:
    """During an upgrade a relayed request may reach the oldest broker."""
    [new] = await start_brokers(1)
    [old] = await start_brokers(2, ranges={ApiKey.API_VERSIONS: (0, 2), ApiKey.FETCH: (0, 11)})
    versions = _versions_of([new, old])

    assert (await versions.shared()).ranges == {ApiKey.FETCH: (0, 11), ApiKey.API_VERSIONS: (0, 2)}


async def test_new_broker_is_requested_and_stopped_one_dropped(start_brokers) -> None:
    """The result follows the cluster; known brokers are not requested again."""
    brokers = await start_brokers(1)
    [old] = await start_brokers(2, ranges={ApiKey.API_VERSIONS: (0, 2), ApiKey.FETCH: (0, 11)})
    versions = _versions_of(brokers)
    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    brokers.append(old)
    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 11)
    brokers.remove(old)

    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    assert _request_count(brokers[0]) == 1


async def test_restarted_broker_is_requested_again(start_brokers) -> None:
    """It may have another version of Kafka; its epoch differs."""
    [broker] = await start_brokers(1)
    epoch = 5

    def live():
        endpoint = broker.endpoint
        return [type(endpoint)(endpoint.broker_id, endpoint.host, endpoint.port, epoch)]

    versions = SharedVersions(live, client_id="tests")
    await versions.shared()
    broker.ranges = {**BROKER_RANGES, ApiKey.FETCH: (4, 18)}
    epoch = 6

    assert (await versions.shared()).ranges[ApiKey.FETCH] == (4, 18)


async def test_unreachable_broker_is_skipped_for_a_while(start_brokers, caplog) -> None:
    """It is logged once, and requested again later."""
    brokers = await start_brokers(1, 2)
    port = brokers[1].port
    await brokers[1].close()
    versions = _versions_of(brokers)
    for _ in range(3):
        assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    assert len(caplog.records) == 1
    assert caplog.records[0].broker == 2
    await brokers[1].start(port)
    versions._retry_at = dict.fromkeys(versions._retry_at, 0.0)
    await versions.shared()

    assert _request_count(brokers[1]) == 1


@pytest.mark.slow
async def test_hung_broker_delays_clients_only_briefly(start_brokers, monkeypatch) -> None:
    """A hung process accepts connections and answers nothing."""
    monkeypatch.setattr(relay, "VERSIONS_TIMEOUT_MS", 500)  # enough for the other broker on a busy machine
    [good] = await start_brokers(1)
    silent = await serve(lambda _peer, _frame: asyncio.Event().wait(), "127.0.0.1", 0)
    frozen = type(good.endpoint)(2, "127.0.0.1", silent.port)
    versions = SharedVersions(lambda: [good.endpoint, frozen], client_id="tests")

    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    await silent.close(grace_ms=1)


async def test_without_live_brokers_the_last_result_is_used(start_brokers) -> None:
    """A client that connects at that time must not conclude that Produce does not exist."""
    brokers = await start_brokers(1)
    versions = _versions_of(brokers)
    assert versions.latest == NO_BROKER
    before = await versions.shared()
    brokers.clear()

    assert before == await versions.shared()


@pytest.mark.parametrize("error_code", [-1, 31])
async def test_broker_with_an_error_response_is_skipped(error_code, start_brokers) -> None:
    """Its response has no versions."""
    brokers = await start_brokers(1, 2)
    brokers[1].features = {"error_code": error_code}

    assert (await _versions_of(brokers).shared()).ranges[ApiKey.FETCH] == (0, 17)
