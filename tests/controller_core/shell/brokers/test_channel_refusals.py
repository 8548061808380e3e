"""What a broker throws at is told again, and holds nothing up.

Sources: C12; KIP-380; ControllerChannelManager.
"""

import logging

import pytest

from controller_core.model.events import LeaderAndIsrRejected
from controller_core.model.ids import TopicPartition
from controller_core.shell.brokers import channels as channels_module
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import refuse_once


async def test_what_another_life_of_a_broker_refuses_is_told_by_its_registration(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-380, C13: it will be told everything anew; what waits for its former life is not sent, and nobody waits for it."""
    first, second = world.brokers
    first.react = refuse_once(ErrorCode.STALE_BROKER_EPOCH)
    await world.send(metadata(world.cluster), lead(world.cluster, 1), stop(1, 0), lead(world.cluster, 2))
    assert await world.channels.idle(PATIENCE_MS)
    world.observe(world.registered(epoch=777))
    await world.send(lead(world.cluster, 1))
    assert await world.channels.idle(PATIENCE_MS)

    assert first.keys == [META, LEAD]
    assert second.keys == [META, LEAD]
    assert first.taken[-1][1]["broker_epoch"] == 777
    assert world.deposed == 0
    assert len(caplog.records) == 1


async def test_a_leader_and_isr_that_a_broker_throws_at_comes_back_in_halves(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer does not say which partition was at fault; what is told again says its epochs as they were told."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    await world.send(lead(world.cluster, 1), metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)

    assert first.keys == [LEAD, META]
    halves = [
        LeaderAndIsrRejected(1, {TopicPartition("orders", 0): 4}),
        LeaderAndIsrRejected(1, {TopicPartition("orders", 1): 0}),
    ]
    assert halves == [retry.event for retry in world.retries]
    assert [record.error for record in caplog.records] == ["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.shows("C12")
async def test_an_update_metadata_that_a_broker_throws_at_is_sent_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It says how things are: it may be heard twice, and has to be heard (C12)."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.UNKNOWN_SERVER_ERROR)
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert first.keys == [META, META, LEAD]
    assert [record.error for record in caplog.records] == ["UNKNOWN_SERVER_ERROR"]


async def test_an_update_metadata_that_a_broker_throws_at_each_time_holds_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is passed over after MAX_REFUSALS, and said once: what waits behind it may do."""
    monkeypatch.setattr(channels_module, "MAX_REFUSALS", 2)
    first, _ = world.brokers

    async def react(key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR} if key is META else None

    first.react = react
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert first.keys == [META, META, META, LEAD]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("key", [META, LEAD, STOP])
async def test_a_broker_that_does_not_let_the_controller_in_is_asked_until_it_does(
    world: World, caplog: pytest.LogCaptureFixture, key: ApiKey
) -> None:
    """It looked into nothing, so the same may be sent; the log says once what has to be granted."""
    first, _ = world.brokers
    refusals = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 3

    async def react(_key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": refusals.pop()} if refusals else None

    first.react = react
    await world.send({META: metadata(world.cluster), LEAD: lead(world.cluster, 1), STOP: stop(1, 0)}[key])
    await world.channels.idle(PATIENCE_MS)

    assert first.keys == [key] * 4
    assert world.retries == []
    assert (1 if key is STOP else 0) == len(world.answers)
    assert ["ClusterAction on the Cluster resource" in record.getMessage() for record in caplog.records] == [True]


async def test_a_broker_that_does_not_serve_a_request_is_complained_of_once_and_told_the_rest(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """One of Kafka 4, say: no answer will ever come. Bad peers never flood a log."""
    first, _ = world.brokers
    del first.ranges[LEAD]
    await world.send(lead(world.cluster, 1), lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [META]
    assert [(record.levelno, record.api) for record in caplog.records] == [(logging.ERROR, "LEADER_AND_ISR")]


async def test_a_failure_on_one_answer_does_not_end_the_channel(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker's channel that ended without a word would leave it with an old state for good (C12)."""
    first, _ = world.brokers

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("controller_core.shell.brokers.answers.interpret_answer", fail)
    await world.send(lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [LEAD, META]
    assert {record.getMessage() for record in caplog.records} == {"Unexpected failure of a request to a broker"}
