"""How long a caller is kept waiting after its wish was decided.

Leaves out what is waited for: the active controller knows.
"""

from controller_core.model.errors import Failure
from controller_core.shell.active import ActiveController, Defaults
from controller_core.shell.admin.outcomes import timed_out

MAX_PROPAGATION_WAIT_MS = 1_000
"""A caller that goes on to another broker shall find there what was just decided. Live brokers hear of it within
milliseconds; one that hangs holds nobody up for longer than this."""

MAX_WAIT_MS = 600_000
"""The longest that a request is held for its own timeout: clients give up after `default.api.timeout.ms` (a minute), and
a timeout of days would keep a place of its connection for days."""


MAX_SETTINGS_WAIT_MS = 5_000
"""A broker tells the cluster's settings within milliseconds of a tenure's begin, if any lives."""

SETTINGS_UNKNOWN = timed_out("No broker has told the cluster's settings yet; the request may be sent again.")
"""Better no answer than one by settings that are not the cluster's: a topic with one replica, or a deletion that is forbidden."""


async def known_defaults(active: ActiveController, timeout_ms: int) -> Defaults | Failure:
    """Wait for the cluster's settings, within the request's timeout and a limit of our own."""
    found = await active.known_defaults(max(0, min(timeout_ms, MAX_SETTINGS_WAIT_MS)))
    return SETTINGS_UNKNOWN if found is None else found


async def brokers_know(active: ActiveController, timeout_ms: int) -> None:
    """Wait until the live brokers know what was decided, within the request's timeout and a limit of our own.

    It is no failure when they do not know it in time: it is decided and written, and they will.
    """
    if timeout_ms > 0:
        await active.brokers_know(min(timeout_ms, MAX_PROPAGATION_WAIT_MS))
