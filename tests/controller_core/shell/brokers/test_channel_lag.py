"""Brokers that fall behind: the number of queued requests is limited.

Source: C12.
"""

import asyncio

import pytest

from controller_core.shell.brokers import channel as channel_module
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import hang
from tests.controller_core.shell.zookeeper.vocabulary import read_change


@pytest.mark.shows("C12")
async def test_a_full_queue_is_replaced_by_the_current_state(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C12: only requests that the current state does not cover are kept: StopReplica, and deleted topics."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    release = asyncio.Event()

    async def slow(_key: ApiKey, _body: Body) -> Body | None:
        await release.wait()
        return None

    first.react = slow
    world.observe(world.registered(epoch=555))  # Opens a channel with the limit of this test.
    await world.send(
        lead(world.cluster, 1), metadata(world.cluster, deleting=True), stop(1, 0), metadata(world.cluster)
    )
    apply(world.cluster, read_change(world.cluster, "known orders-0=1/9/1/11"))
    await world.send(lead(world.cluster, 1), lead(world.cluster, 1))
    assert [record.getMessage() for record in caplog.records] == [
        "Broker request queue full; replacing queued requests with a full state update"
    ]
    release.set()

    assert await world.channels.idle(PATIENCE_MS)
    assert first.keys == [LEAD, META, STOP, META, LEAD, LEAD]
    states = [body["topic_states"][0]["partition_states"][0] for _, body in first.taken]
    assert [
        states[0]["leader_epoch"],
        states[1]["leader"],
        states[3]["leader_epoch"],
        states[4]["leader_epoch"],
    ] == [4, -2, 9, 9]


async def test_a_queue_of_deletions_gets_the_full_state_seldom(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Deletions are kept; the limit grows with them, so that the full state is not queued with each of them."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    first.react = hang
    world.observe(world.registered(epoch=555))
    await world.send(*(stop(1, 0) for _ in range(40)))

    assert len(caplog.records) <= 4
    assert world.channels.queued()[1] <= 40 + 2 * len(caplog.records)
