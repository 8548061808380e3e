"""What callers wait for in a tenure: the cluster's settings, a topic's end, a broker's going.

Source: active.ActiveController.
"""

import asyncio

import pytest

from controller_core.model.events import (
    BrokersRead,
    DeleteTopics,
)
from controller_core.shell.active import Defaults, TermEndedError
from tests.controller_core.shell.terms import Term, settled
from tests.twins.unclean_election import allows_unclean

LONG_MS = 60_000


async def test_the_clusters_settings_are_waited_for(term: Term) -> None:
    """CreateTopics with the cluster's defaults: no other numbers will do."""
    assert await term.controller.known_defaults(1) is None
    waiting = asyncio.create_task(term.controller.known_defaults(LONG_MS))
    await settled()

    term.controller.set_defaults(Defaults(3, 2))

    assert await waiting == Defaults(3, 2)
    assert await term.controller.known_defaults(0) == Defaults(3, 2)


async def test_a_broker_that_allows_unclean_leaders_in_its_own_file_allows_them_by_default(term: Term) -> None:
    """C7: the default counts where the topic says nothing; a file that says nothing takes it back."""
    term.controller.set_defaults(Defaults(unclean_leader_election_enable=True))
    await settled()
    assert allows_unclean(term.cluster, "orders")

    term.controller.set_defaults(Defaults())
    await settled()
    assert not allows_unclean(term.cluster, "orders")


async def test_who_waits_for_the_settings_hears_when_the_tenure_ends(term: Term) -> None:
    """NOT_CONTROLLER says where to go on; a timeout would not."""
    waiting = asyncio.create_task(term.controller.known_defaults(LONG_MS))
    await settled()

    await term.controller.close()

    with pytest.raises(TermEndedError):
        await waiting


async def test_waiting_for_a_topic_to_go_ends_when_it_goes(term: Term) -> None:
    """DeleteTopics answers after the end; the same name made again is another topic."""
    await term.create("orders", (1, 2))
    await term.controller.submit(DeleteTopics(("orders",)))
    waiting = asyncio.create_task(term.controller.topic_removed("orders", LONG_MS))
    await settled()
    assert not waiting.done()

    term.channels.answer_deletions()
    term.channels.sent.clear()
    again = asyncio.create_task(term.create("orders", (3,)))

    assert await waiting
    assert (await again).failure is None
    assert not await term.controller.topic_removed("orders", 0)


async def test_a_topic_that_is_not_there_is_gone(term: Term) -> None:
    """Nothing to wait for."""
    assert await term.controller.topic_removed("never", LONG_MS)


async def test_those_who_wait_for_a_topic_are_told_when_the_tenure_ends(term: Term) -> None:
    """The next controller goes on with the deletion; its caller asks there."""
    await term.create("orders", (1, 2))
    waiting = asyncio.create_task(term.controller.topic_removed("orders", LONG_MS))
    await settled()
    await term.controller.close()

    with pytest.raises(TermEndedError):
        await waiting


async def test_whoever_keeps_connections_hears_of_brokers_that_left(term: Term) -> None:
    """The relay's connections to a broker end with its registration."""
    left: list[int] = []
    term.controller.broker_left = lambda broker: left.append(broker.id)

    await term.controller.submit(BrokersRead((term.broker(1), term.broker(3))))

    assert left == [2]
    assert term.channels.followed > 1
