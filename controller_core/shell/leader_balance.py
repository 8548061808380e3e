"""When the controller looks whether leaders are where they are preferred.

Leaves out what is found and done (cluster.leader_balance).
"""

import asyncio

from controller_core.model.events import BalanceLeaders
from controller_core.shell.controller import Controller
from controller_core.shell.settings import LeaderBalance

FIRST_CHECK_S = 5.0
"""Pause before a tenure's first look, as Kafka's: brokers are just being told what is led by whom."""


async def balance_leaders(controller: Controller, settings: LeaderBalance) -> None:
    """Look, for as long as the tenure lasts; not at all where it is not enabled."""
    pause_s = FIRST_CHECK_S
    while settings.is_enabled:
        await asyncio.sleep(pause_s)
        # One that cannot be done is told by the controller, and done by the next look.
        await asyncio.wait([controller.post(BalanceLeaders(settings.percentage))])
        pause_s = settings.check_interval_seconds
