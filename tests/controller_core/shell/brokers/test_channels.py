"""Channels to fake brokers on real sockets: order, one request at a time, retries.

Sources: C13; protocol notes, Z4; ControllerChannelManager.
"""

import asyncio
import logging

import pytest

from kafka_wire import ApiKey, Body
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import hang, hang_up


@pytest.mark.shows("C13")
async def test_requests_arrive_in_the_order_they_were_sent(world: World) -> None:
    """C13: brokers rely on the order (a StopReplica follows the LeaderAndIsr that removed the replica)."""
    first, second = world.brokers
    await world.send(
        metadata(world.cluster), lead(world.cluster, 1), stop(1, 0), lead(world.cluster, 2), metadata(world.cluster)
    )

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [META, LEAD, STOP, META]
    assert second.keys == [META, LEAD, META]
    assert first.versions == {LEAD: 7, META: 8, STOP: 4}


@pytest.mark.parametrize(("highest", "is_sent"), [(5, False), (6, True), (7, True)])
async def test_the_leader_recovery_state_is_sent_from_version_6_on(world: World, highest: int, is_sent: bool) -> None:
    """KIP-704: version 6 added the field; a broker of ibp 2.8 gets all others."""
    first, _ = world.brokers
    first.ranges[LEAD] = (0, highest)
    world.cluster.columns.recovering[:] = True
    await world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    ((_, body),) = first.taken
    states = [state for topic in body["topic_states"] for state in topic["partition_states"]]
    assert [state["leader_recovery_state"] for state in states] == [1 if is_sent else 0] * len(states)


@pytest.mark.shows("C13")
async def test_every_request_carries_the_epoch_of_the_broker_it_goes_to(world: World) -> None:
    """C13, KIP-380: a broker refuses requests for another incarnation."""
    await world.send(metadata(world.cluster), stop(1, 0), lead(world.cluster, 2))
    await world.channels.idle(PATIENCE_MS)

    epochs = [{body["broker_epoch"] for _, body in broker.taken} for broker in world.brokers]
    assert epochs == [{101}, {102}]


async def test_a_request_is_sent_after_the_previous_one_was_answered(world: World) -> None:
    """ControllerChannelManager: one request in flight to each broker."""
    first, _ = world.brokers
    first.react = hang
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    await first.until(1)
    for _ in range(20):
        await asyncio.sleep(0)

    assert first.keys == [META]
    assert world.channels.queued()[1] == 2


async def test_a_broker_that_does_not_answer_delays_no_other(world: World) -> None:
    """Each broker has its own channel."""
    silent, other = world.brokers
    silent.react = hang
    await world.send(metadata(world.cluster), metadata(world.cluster), lead(world.cluster, 2))

    assert await other.until(3) == [META, META, LEAD]
    assert not await world.channels.idle(0)
    assert world.channels.queued()[1] == 2


async def test_a_request_is_sent_again_until_it_is_answered(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Protocol notes, Z4: a broker registers before its socket accepts connections. Retries keep the order and are logged once."""
    first, _ = world.brokers
    first.react = hang_up
    with caplog.at_level(logging.INFO):
        await world.send(metadata(world.cluster), lead(world.cluster, 1))
        await first.until(3)
        first.react = None
        assert await world.channels.idle(PATIENCE_MS)

    assert first.keys[:3] == [META, META, META]
    assert first.keys[-1] == LEAD
    assert first.keys.count(LEAD) == 1
    again = [record for record in caplog.records if "retrying until it is answered" in record.getMessage()]
    assert [(vars(record)["broker"], vars(record)["api"]) for record in again] == [(1, "UPDATE_METADATA")]


async def test_a_broker_gets_queued_requests_once_it_accepts_connections(world: World) -> None:
    """Its port refuses connections at first."""
    first, _ = world.brokers
    port = first.port
    await first.close()
    await world.send(metadata(world.cluster))
    for _ in range(50):
        await asyncio.sleep(0.001)
    await first.start(port)

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [META]


async def test_waiting_for_queued_requests_ignores_later_ones(world: World) -> None:
    """The queues of a busy controller are never empty: a caller waits for the requests of its own event."""
    first, _ = world.brokers
    release = asyncio.Event()

    async def slow_stop_replica(key: ApiKey, _body: Body) -> Body | None:
        if key is STOP:
            await release.wait()
        return None

    first.react = slow_stop_replica
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    waiting = asyncio.create_task(world.channels.idle(PATIENCE_MS))
    await asyncio.sleep(0)
    await world.send(stop(1, 0))

    assert await waiting
    assert not await world.channels.idle(0)
    release.set()
    assert await world.channels.idle(PATIENCE_MS)


async def test_a_silent_broker_is_not_waited_for(world: World) -> None:
    """A frozen broker counts as live until its session expires: it must not delay a caller for that time."""
    first, second = world.brokers
    first.react = hang
    await world.send(metadata(world.cluster))

    assert not await world.channels.idle(PATIENCE_MS, silence_ms=1)
    assert await second.until(1) == [META]
    assert not await world.channels.idle(PATIENCE_MS, silence_ms=1), "it is still silent for the next caller"


@pytest.mark.slow
async def test_a_broker_that_answers_is_waited_for_longer_than_a_silent_one(world: World) -> None:
    """Silence is measured for each request: a broker that processes its queue is not silent."""
    first, _ = world.brokers
    loop = asyncio.get_running_loop()
    silence_ms, began = 2_000, loop.time()

    async def slow(_key: ApiKey, _body: Body) -> Body | None:
        await asyncio.sleep(0.1)
        return None

    first.react = slow
    count = 25
    await world.send(*(metadata(world.cluster) for _ in range(count)))
    assert await world.channels.idle(PATIENCE_MS, silence_ms)
    assert (len(first.keys), loop.time() - began > silence_ms / 1000) == (count, True)
