"""Live brokers are asked for their versions once in their life, and a silent one holds nobody up for long."""

import asyncio

import pytest

from controller_core.shell.front import broker_versions
from controller_core.shell.front.broker_versions import SharedVersions
from kafka_node.versions import NO_BROKER
from kafka_wire.api import ApiKey
from kafka_wire.net.server import serve
from tests.controller_core.shell.front.fakes import BROKER_RANGES


def _over(brokers) -> SharedVersions:
    return SharedVersions(lambda: [broker.endpoint for broker in brokers], client_id="tests")


def _asked(broker) -> int:
    """Count the connections by which it was asked."""
    return len(broker.peers)


async def test_each_broker_is_asked_once(start_brokers) -> None:
    """Also when many clients come at the same moment."""
    brokers = await start_brokers(1, 2)
    versions = _over(brokers)
    found = await asyncio.gather(*(versions.shared() for _ in range(10)))
    await versions.shared()

    assert [one.ranges[ApiKey.FETCH] for one in found] == [(0, 17)] * 10
    assert [_asked(broker) for broker in brokers] == [1, 1]


async def test_a_mixed_cluster_offers_what_all_know(start_brokers) -> None:
    """During an upgrade a relayed request may reach the oldest broker."""
    [new] = await start_brokers(1)
    [old] = await start_brokers(2, ranges={ApiKey.API_VERSIONS: (0, 2), ApiKey.FETCH: (0, 11)})
    versions = _over([new, old])

    assert (await versions.shared()).ranges == {ApiKey.FETCH: (0, 11), ApiKey.API_VERSIONS: (0, 2)}


async def test_a_new_broker_is_asked_and_a_gone_one_forgotten(start_brokers) -> None:
    """The answer follows the cluster; the brokers known already are not asked again."""
    brokers = await start_brokers(1)
    [old] = await start_brokers(2, ranges={ApiKey.API_VERSIONS: (0, 2), ApiKey.FETCH: (0, 11)})
    versions = _over(brokers)
    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    brokers.append(old)
    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 11)
    brokers.remove(old)

    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    assert _asked(brokers[0]) == 1


async def test_a_broker_in_its_next_life_is_asked_again(start_brokers) -> None:
    """It may have come back with another version of Kafka; its epoch tells."""
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


async def test_a_broker_that_cannot_be_asked_is_left_out_for_a_while(start_brokers, caplog) -> None:
    """It is named in the log once, and asked again later."""
    brokers = await start_brokers(1, 2)
    port = brokers[1].port
    await brokers[1].close()
    versions = _over(brokers)
    for _ in range(3):
        assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    assert len(caplog.records) == 1
    assert caplog.records[0].broker == 2
    await brokers[1].start(port)
    versions._retry_at = dict.fromkeys(versions._retry_at, 0.0)
    await versions.shared()

    assert _asked(brokers[1]) == 1


async def test_a_silent_broker_holds_nobody_up_for_long(start_brokers, monkeypatch) -> None:
    """A frozen process accepts connections and answers nothing."""
    monkeypatch.setattr(broker_versions, "REQUEST_TIMEOUT_MS", 30)
    [good] = await start_brokers(1)
    silent = await serve(lambda _peer, _frame: asyncio.Event().wait(), "127.0.0.1", 0)
    frozen = type(good.endpoint)(2, "127.0.0.1", silent.port)
    versions = SharedVersions(lambda: [good.endpoint, frozen], client_id="tests")

    assert (await versions.shared()).ranges[ApiKey.FETCH] == (0, 17)
    await silent.close(grace_ms=1)


async def test_with_no_live_broker_the_last_answer_stands(start_brokers) -> None:
    """A client that connects in the worst moment must not conclude that Produce does not exist."""
    brokers = await start_brokers(1)
    versions = _over(brokers)
    assert versions.latest == NO_BROKER
    before = await versions.shared()
    brokers.clear()

    assert before == await versions.shared()


@pytest.mark.parametrize("error_code", [-1, 31])
async def test_a_broker_that_refuses_is_left_out(error_code, start_brokers) -> None:
    """An error is no answer."""
    brokers = await start_brokers(1, 2)
    brokers[1].features = {"error_code": error_code}

    assert (await _over(brokers).shared()).ranges[ApiKey.FETCH] == (0, 17)
