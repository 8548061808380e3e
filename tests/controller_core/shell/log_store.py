"""A store in memory that keeps committed changes in a log and delivers them in its order, to the active controller and to standbys."""

import asyncio
from collections.abc import Sequence

from controller_core.model import Cluster
from controller_core.model.changes import Change
from controller_core.model.events import Event
from controller_core.shell.pace import Pace
from controller_core.shell.store import Deliver, Outcome, Reread


class LogStore:
    """Implements `shell.store.Store`. An append is committed when the test allows it."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.log: list[Change] = []
        self.may_commit = asyncio.Event()
        self._deliver: list[Deliver] = []
        self._order = asyncio.Lock()  # fair: commits are delivered in the order in which they were appended

    def deliver_to(self, deliver: Deliver) -> None:
        """Add a receiver: the active controller first, then standbys."""
        self._deliver.append(deliver)

    async def commit(self, _cluster: Cluster, changes: Sequence[Change], _event: Event) -> Outcome:
        """Append, wait until that is committed, deliver."""
        self.log += changes
        async with self._order:
            await self.may_commit.wait()
            for deliver in self._deliver:
                await deliver(changes)
        return Outcome(list(changes))

    async def reread(self, _cluster: Cluster, _outcome: Outcome) -> Reread:
        """Never called: no other process writes the log."""
        raise AssertionError("a log refuses nothing")
