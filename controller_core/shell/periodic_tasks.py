"""Periodic tasks of a term: topic ids for topics without one, and the balance of leaders.

A new topic without an id gets one before its partitions come online (`zookeeper.watching`). All others get theirs here: at a
take-over, or once a broker has reported an inter.broker.protocol.version with topic ids.
"""

import asyncio
from itertools import islice
from random import Random, SystemRandom

from controller_core.model import events, zookeeper_events
from controller_core.shell import active, random_topic_ids
from controller_core.shell.controller import Controller
from controller_core.shell.settings import LeaderBalance
from controller_core.zookeeper_mode.observed_topics import topics_without_id

MAX_TOPICS_PER_EVENT = 500
"""Topics that get an id in one event. Each sends a request to every broker; more would fill the brokers' request queues."""
BROKERS_ANSWER_MS = 30_000
"""Time for brokers to answer the requests of one event before the next event is submitted."""
POLL_S = 5.0
"""Pause between checks for topics without an id."""
FIRST_CHECK_S = 5.0
"""Pause before a term's first balance of leaders, as Kafka's: brokers are just being notified of their leaders."""


async def assign_topic_ids(controller: Controller, random: Random | None = None) -> None:
    """Assign ids until the term ends."""
    random = random or SystemRandom()
    while True:
        if controller.uses_topic_ids:
            await _assign(controller, random)
        await asyncio.sleep(POLL_S)


async def _assign(controller: Controller, random: Random) -> None:
    while names := list(islice(topics_without_id(controller.cluster), MAX_TOPICS_PER_EVENT)):
        try:
            await controller.submit(
                zookeeper_events.AssignTopicIds({name: random_topic_ids.draw_topic_id(random) for name in names})
            )
        except active.OverloadedError:
            return  # Another process writes the same znodes; the next check tries again.
        await controller.brokers_answered(BROKERS_ANSWER_MS, BROKERS_ANSWER_MS)


async def balance_leaders(controller: Controller, settings: LeaderBalance) -> None:
    """Balance leaders periodically until the term ends; return at once if it is disabled."""
    pause_s = FIRST_CHECK_S
    while settings.is_enabled:
        await asyncio.sleep(pause_s)
        # A failure is logged by the controller, and the next check tries again.
        await asyncio.wait([controller.post(events.BalanceLeaders(settings.percentage))])
        pause_s = settings.check_interval_seconds
