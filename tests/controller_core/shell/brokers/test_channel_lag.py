"""A broker that lags behind: what is kept for it has a limit.

Source: C12.
"""

import asyncio

import pytest

from controller_core.decisions.transition import apply
from controller_core.shell.brokers import channel as channel_module
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from tests.controller_core.shell.brokers.channel_world import LEAD, META, PATIENCE_MS, STOP, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import hang
from tests.controller_core.shell.zookeeper.vocabulary import read_change


@pytest.mark.shows("C12")
async def test_a_broker_that_lags_too_far_behind_is_told_the_present_state_instead(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A limit on everything (C12): what is kept is what nothing else says: deletions, and topics that are no more."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    release = asyncio.Event()

    async def slow(_key: ApiKey, _body: Body) -> Body | None:
        await release.wait()
        return None

    first.react = slow
    world.observe(world.registered(epoch=555))  # A channel under the limit of this test.
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
    told = [body["topic_states"][0]["partition_states"][0] for _, body in first.taken]
    assert [
        told[0]["leader_epoch"],
        told[1]["leader"],
        told[3]["leader_epoch"],
        told[4]["leader_epoch"],
    ] == [4, -2, 9, 9]


async def test_deletions_alone_do_not_bring_the_whole_state_with_each_of_them(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be told anew stays; the limit grows with it, so that the state is told seldom."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    first.react = hang
    world.observe(world.registered(epoch=555))
    await world.send(*(stop(1, 0) for _ in range(40)))

    assert len(caplog.records) <= 4
    assert world.channels.queued()[1] <= 40 + 2 * len(caplog.records)
