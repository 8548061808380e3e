"""What callers wait for in a tenure: the cluster's settings, a topic's end, a broker's going.

Source: active.ActiveController.
"""

import asyncio

import pytest

from controller_core.model.events import (
    BrokersRead,
    DeleteTopics,
)
from controller_core.shell.active import Defaults, TenureLostError
from tests.controller_core.shell.tenures import Tenure, settled
from tests.twins.unclean_election import allows_unclean

LONG_MS = 60_000


async def test_the_clusters_settings_are_waited_for(tenure: Tenure) -> None:
    """CreateTopics with the cluster's defaults: no other numbers will do."""
    assert await tenure.controller.known_defaults(1) is None
    waiting = asyncio.create_task(tenure.controller.known_defaults(LONG_MS))
    await settled()

    tenure.controller.learn(Defaults(3, 2))

    assert await waiting == Defaults(3, 2)
    assert await tenure.controller.known_defaults(0) == Defaults(3, 2)


async def test_a_broker_that_allows_unclean_leaders_in_its_own_file_allows_them_by_default(tenure: Tenure) -> None:
    """C7: the default counts where the topic says nothing; a file that says nothing takes it back."""
    tenure.controller.learn(Defaults(unclean_leader_election_enable=True))
    await settled()
    assert allows_unclean(tenure.cluster, "orders")

    tenure.controller.learn(Defaults())
    await settled()
    assert not allows_unclean(tenure.cluster, "orders")


async def test_who_waits_for_the_settings_hears_when_the_tenure_ends(tenure: Tenure) -> None:
    """NOT_CONTROLLER says where to go on; a timeout would not."""
    waiting = asyncio.create_task(tenure.controller.known_defaults(LONG_MS))
    await settled()

    await tenure.controller.close()

    with pytest.raises(TenureLostError):
        await waiting


async def test_waiting_for_a_topic_to_go_ends_when_it_goes(tenure: Tenure) -> None:
    """DeleteTopics answers after the end; the same name made again is another topic."""
    await tenure.create("orders", (1, 2))
    await tenure.controller.submit(DeleteTopics(("orders",)))
    waiting = asyncio.create_task(tenure.controller.topic_gone("orders", LONG_MS))
    await settled()
    assert not waiting.done()

    tenure.channels.answer_deletions()
    tenure.channels.sent.clear()
    again = asyncio.create_task(tenure.create("orders", (3,)))

    assert await waiting
    assert (await again).failure is None
    assert not await tenure.controller.topic_gone("orders", 0)


async def test_a_topic_that_is_not_there_is_gone(tenure: Tenure) -> None:
    """Nothing to wait for."""
    assert await tenure.controller.topic_gone("never", LONG_MS)


async def test_those_who_wait_for_a_topic_are_told_when_the_tenure_ends(tenure: Tenure) -> None:
    """The next controller goes on with the deletion; its caller asks there."""
    await tenure.create("orders", (1, 2))
    waiting = asyncio.create_task(tenure.controller.topic_gone("orders", LONG_MS))
    await settled()
    await tenure.controller.close()

    with pytest.raises(TenureLostError):
        await waiting


async def test_whoever_keeps_connections_hears_of_brokers_that_left(tenure: Tenure) -> None:
    """The relay's connections to a broker end with its registration."""
    left: list[int] = []
    tenure.controller.broker_left = lambda broker: left.append(broker.id)

    await tenure.controller.submit(BrokersRead((tenure.broker(1), tenure.broker(3))))

    assert left == [2]
    assert tenure.channels.followed > 1
