"""Topic ids for topics without one: when they are assigned, and in what portions.

A topic that appears without an id gets one before its partitions come online (`watching`). All others that have none get one
here: at a take-over, or later, once a broker has answered that its inter.broker.protocol.version has topic ids.
"""

# MERGED controller_core.shell.periodic_tasks: """When the controller looks whether leaders are where they are preferred.
# MERGED controller_core.shell.periodic_tasks:
# MERGED controller_core.shell.periodic_tasks: Leaves out what is found and done (decisions.leader_balance).
# MERGED controller_core.shell.periodic_tasks: """
import asyncio
from itertools import islice
from random import Random, SystemRandom

from controller_core.model import events
from controller_core.shell.active import OverloadedError
from controller_core.shell.controller import Controller
from controller_core.shell.random_topic_ids import draw_topic_id
from controller_core.shell.settings import LeaderBalance
from controller_core.zookeeper_mode.observed_topics import topics_without_id

MAX_TOPICS_PER_EVENT = 500
"""Topics that get an id at once. Each sends a request to every broker; more would fill the brokers' request queues."""
BROKERS_ANSWER_MS = 30_000
"""Time for brokers to answer the requests of one portion before the next portion is sent."""
POLL_S = 5.0
"""Pause between two checks for topics without an id."""


async def assign_topic_ids(controller: Controller, random: Random | None = None) -> None:
    """Assign ids until the tenure ends."""
    random = random or SystemRandom()
    while True:
        if controller.uses_topic_ids:
            await _assign(controller, random)
        await asyncio.sleep(POLL_S)


async def _assign(controller: Controller, random: Random) -> None:
    while names := list(islice(topics_without_id(controller.cluster), MAX_TOPICS_PER_EVENT)):
        try:
            await controller.submit(events.AssignTopicIds({name: draw_topic_id(random) for name in names}))
        except OverloadedError:
            return  # Somebody else writes the same znodes; the next check tries again.
        await controller.brokers_answered(BROKERS_ANSWER_MS, BROKERS_ANSWER_MS)


FIRST_CHECK_S = 5.0
"""Pause before a tenure's first look, as Kafka's: brokers are just being told what is led by whom."""


async def balance_leaders(controller: Controller, settings: LeaderBalance) -> None:
    """Look, for as long as the tenure lasts; not at all where it is not enabled."""
    pause_s = FIRST_CHECK_S
    while settings.is_enabled:
        await asyncio.sleep(pause_s)
        # One that cannot be done is told by the controller, and done by the next look.
        await asyncio.wait([controller.post(events.BalanceLeaders(settings.percentage))])
        pause_s = settings.check_interval_seconds
