"""Refused requests: they are retried and do not block the requests behind them.

Sources: C12; KIP-380; ControllerChannelManager.
"""

import logging

import pytest

from controller_core.model import TopicPartition
from controller_core.model.zookeeper_events import LeaderAndIsrRejected
from controller_core.shell.brokers import channels as channels_module
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import refuse_once


async def test_requests_for_a_previous_incarnation_are_dropped_and_not_retried(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-380, C13: the new incarnation gets the full state; queued requests are not sent and callers do not wait for them."""
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


async def test_a_refused_leader_and_isr_is_retried_in_halves(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The answer does not name the partition that caused the error; the retries have the leader epochs of the request."""
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
    assert [vars(record)["error"] for record in caplog.records] == ["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.shows("C12")
async def test_a_refused_update_metadata_is_sent_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It contains current state: a broker may get it twice, and must get it (C12)."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.UNKNOWN_SERVER_ERROR)
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert first.keys == [META, META, LEAD]
    assert [vars(record)["error"] for record in caplog.records] == ["UNKNOWN_SERVER_ERROR"]


async def test_an_update_metadata_that_is_refused_every_time_is_skipped(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is skipped after MAX_REFUSALS and logged once: the requests behind it may succeed."""
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
async def test_an_unauthorized_request_is_sent_again_until_it_is_granted(
    world: World, caplog: pytest.LogCaptureFixture, key: ApiKey
) -> None:
    """The broker processed nothing, so the same request is sent again; the log states once what has to be granted."""
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


async def test_an_unsupported_request_is_logged_once_and_the_others_are_sent(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """For example a broker of Kafka 4. Bad peers never flood a log."""
    first, _ = world.brokers
    del first.ranges[LEAD]
    await world.send(lead(world.cluster, 1), lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [META]
    assert [(record.levelno, vars(record)["api"]) for record in caplog.records] == [(logging.ERROR, "LEADER_AND_ISR")]


async def test_a_failure_on_one_answer_does_not_end_the_channel(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A channel that ended silently would leave its broker with outdated state permanently (C12)."""
    first, _ = world.brokers

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("controller_core.shell.brokers.answers.interpret_answer", fail)
    await world.send(lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [LEAD, META]
    assert {record.getMessage() for record in caplog.records} == {"Unexpected failure of a request to a broker"}
