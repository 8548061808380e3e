"""Topic ids for topics without one: when they are assigned, and in what portions.

A topic that appears without an id gets one before its partitions come online (`watching`). All others that have none get one
here: at a take-over, or later, once a broker has answered that its inter.broker.protocol.version has topic ids.
"""

import asyncio
from itertools import islice
from random import Random, SystemRandom

from controller_core.cluster.topic_ids import without_topic_id
from controller_core.model.events import AssignTopicIds
from controller_core.shell.active import OverloadedError
from controller_core.shell.admin.draws import draw_topic_id
from controller_core.shell.controller import Controller

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
    while names := list(islice(without_topic_id(controller.cluster), MAX_TOPICS_PER_EVENT)):
        try:
            await controller.submit(AssignTopicIds({name: draw_topic_id(random) for name in names}))
        except OverloadedError:
            return  # Somebody else writes the same znodes; the next check tries again.
        await controller.brokers_know(BROKERS_ANSWER_MS, BROKERS_ANSWER_MS)
