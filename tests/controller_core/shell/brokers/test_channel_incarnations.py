"""A channel belongs to one incarnation of its broker: new, changed and ended registrations.

Sources: C13; protocol notes, Z47; KIP-380.
"""

import asyncio

import pytest

from controller_core.model import Broker, TopicPartition
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.model.zookeeper_events import StopReplicaAnswered
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, Start, World, stop
from tests.controller_core.shell.brokers.clusters import broker, lead, metadata
from tests.controller_core.shell.brokers.fake_broker import hang


@pytest.mark.shows("C13")
async def test_a_new_incarnation_of_a_broker_starts_with_an_empty_channel(world: World) -> None:
    """C13: no request for the previous broker epoch is sent; the new incarnation gets the full state."""
    first, _ = world.brokers
    first.react = hang
    await world.send(stop(1, 0), metadata(world.cluster))
    await first.until(1)
    first.react = None
    world.observe(world.registered(epoch=777))
    await world.send(lead(world.cluster, 1))

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [STOP, LEAD]
    assert first.taken[-1][1]["broker_epoch"] == 777
    assert world.answers == []


async def test_a_broker_that_left_gets_no_more_requests(world: World) -> None:
    """Protocol notes, Z47: its queued requests are dropped, and callers no longer wait for them."""
    first, second = world.brokers
    first.react = hang
    await world.send(metadata(world.cluster), lead(world.cluster, 1))
    await first.until(1)
    waiting = asyncio.create_task(world.channels.idle(PATIENCE_MS))
    await asyncio.sleep(0)
    world.observe(world.registered()[1:])
    await world.send(metadata(world.cluster), stop(1, 0))

    assert await waiting
    assert await second.until(2) == [META, META]
    assert set(world.channels.queued()) == {2}
    assert first.keys == [META]


async def test_a_changed_address_keeps_the_queue(start: Start, world: World) -> None:
    """The registration was rewritten in place (KafkaZkClient.updateBrokerInfo): the same incarnation gets no full state."""
    first, _ = world.brokers
    first.react = hang
    await world.send(stop(1, 0), metadata(world.cluster))
    await first.until(1)
    moved = await start()
    world.observe(world.registered(port=moved.port))
    await world.send(lead(world.cluster, 1))

    assert await world.channels.idle(PATIENCE_MS)
    assert moved.keys == [STOP, META, LEAD]
    done = TopicPartition("orders", 0)
    assert world.answers == [StopReplicaAnswered(1, (done,), {}, {done: EPOCH_DURING_DELETE})]


async def test_a_changed_endpoint_of_another_listener_keeps_the_connection(world: World) -> None:
    """The controller uses only the inter-broker listener."""
    first, _ = world.brokers
    await world.send(metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)
    changed = broker(1, port=first.port)
    world.observe([Broker(1, changed.epoch, changed.endpoints[1:], "a-rack"), *world.registered()[1:]])
    await world.send(metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert len(first.connections) == 1
