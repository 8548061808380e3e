"""A channel belongs to one life of its broker: registrations that come, change and go.

Sources: C13; protocol notes, Z47; KIP-380.
"""

import asyncio

import pytest

from controller_core.model.broker import Broker
from controller_core.model.events import StopReplicaAnswered
from controller_core.model.ids import EPOCH_DURING_DELETE, TopicPartition
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, Start, World, stop
from tests.controller_core.shell.brokers.clusters import broker, lead, metadata
from tests.controller_core.shell.brokers.fake_broker import hang


@pytest.mark.shows("C13")
async def test_another_life_of_a_broker_begins_with_an_empty_channel(world: World) -> None:
    """C13: nothing after its epoch changed; it is told everything anew."""
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


async def test_a_broker_that_left_is_told_nothing_more(world: World) -> None:
    """Protocol notes, Z47: what waited for it is dropped, and whoever waits for that goes on."""
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


async def test_a_broker_under_another_address_goes_on_where_it_was(start: Start, world: World) -> None:
    """Its registration was rewritten in place (KafkaZkClient.updateBrokerInfo): the same life, and nobody tells it again."""
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


async def test_endpoints_that_nobody_here_uses_may_change(world: World) -> None:
    """Only the inter-broker listener is ours: the connection stays."""
    first, _ = world.brokers
    await world.send(metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)
    changed = broker(1, port=first.port)
    world.observe([Broker(1, changed.epoch, changed.endpoints[1:], "a-rack"), *world.registered()[1:]])
    await world.send(metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert len(first.connections) == 1
