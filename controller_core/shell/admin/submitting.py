"""Submitting an event on behalf of a caller, who may hang up at any moment.

Leaves out events that nobody waits for: the controller posts those itself.
"""

import asyncio
from typing import Any

from controller_core.model.events import Event
from controller_core.shell.active import ActiveController

_under_way: set[asyncio.Future[Any]] = set()
"""Held here, since the loop itself holds tasks weakly. Bounded by the controller's queue of events."""


async def submit(active: ActiveController, event: Event) -> Any:
    """Submit an event and give the reply; once submitted it is seen through, whatever becomes of the caller.

    A handler is cancelled when its client's connection breaks. Cancelled between a write and its being applied, an event
    would leave the controller with a state that is not the written one.
    Raises TenureLostError, OverloadedError.
    """
    deciding = asyncio.ensure_future(active.submit(event))
    _under_way.add(deciding)
    deciding.add_done_callback(_under_way.discard)
    return await asyncio.shield(deciding)
