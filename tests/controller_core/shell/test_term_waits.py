"""Waits of callers during a term: for the cluster's settings, the removal of a topic, the end of a broker.

Source: active.ActiveController.
"""

import asyncio

import pytest

from controller_core.model.events import DeleteTopics
from controller_core.model.zookeeper_events import BrokersRead
from controller_core.shell.active import Defaults, TermEndedError
from tests.controller_core.shell.terms import Term, settled
from tests.twins.unclean_election import allows_unclean

LONG_MS = 60_000


async def test_the_clusters_settings_are_waited_for(term: Term) -> None:
    """CreateTopics with the cluster's defaults needs the real values."""
    assert await term.controller.known_defaults(1) is None
    waiting = asyncio.create_task(term.controller.known_defaults(LONG_MS))
    await settled()

    term.controller.set_defaults(Defaults(3, 2))

    assert await waiting == Defaults(3, 2)
    assert await term.controller.known_defaults(0) == Defaults(3, 2)


async def test_a_broker_that_allows_unclean_leaders_in_its_own_file_allows_them_by_default(term: Term) -> None:
    """C7: the default counts for topics without the setting; a file without it resets the default."""
    term.controller.set_defaults(Defaults(unclean_leader_election_enable=True))
    await settled()
    assert allows_unclean(term.cluster, "orders")

    term.controller.set_defaults(Defaults())
    await settled()
    assert not allows_unclean(term.cluster, "orders")


async def test_the_end_of_the_term_ends_a_wait_for_the_settings(term: Term) -> None:
    """NOT_CONTROLLER makes the client ask elsewhere; a timeout would not."""
    waiting = asyncio.create_task(term.controller.known_defaults(LONG_MS))
    await settled()

    await term.controller.close()

    with pytest.raises(TermEndedError):
        await waiting


async def test_a_wait_for_a_removal_ends_with_the_removal(term: Term) -> None:
    """DeleteTopics answers afterwards; a new topic with the same name is another topic."""
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


async def test_an_unknown_topic_counts_as_removed(term: Term) -> None:
    """There is nothing to wait for."""
    assert await term.controller.topic_removed("never", LONG_MS)


async def test_the_end_of_the_term_ends_a_wait_for_a_removal(term: Term) -> None:
    """The next controller continues the deletion; the client sends its request there."""
    await term.create("orders", (1, 2))
    waiting = asyncio.create_task(term.controller.topic_removed("orders", LONG_MS))
    await settled()
    await term.controller.close()

    with pytest.raises(TermEndedError):
        await waiting


async def test_unregistered_brokers_are_reported(term: Term) -> None:
    """The relay's connections to a broker end with its registration."""
    left: list[int] = []
    term.controller.broker_left = lambda broker: left.append(broker.id)

    await term.controller.submit(BrokersRead((term.broker(1), term.broker(3))))

    assert left == [2]
    assert term.channels.followed > 1
