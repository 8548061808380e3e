"""Events of callers who hang up."""

import asyncio
from typing import Any

import pytest

from controller_core.model.events import Event, Heal
from controller_core.shell.active import TenureLostError
from controller_core.shell.admin.submitting import submit
from tests.controller_core_shell.admin.fake_active import FakeActive, active_with


class Slow(FakeActive):
    """Decides when it is let."""

    def __init__(self) -> None:
        super().__init__(active_with().cluster)
        self.reached, self.may_go_on, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def submit(self, event: Event) -> Any:
        """Wait in the middle, as for a write."""
        self.reached.set()
        await self.may_go_on.wait()
        self.done.set()
        return await super().submit(event)


async def test_an_event_is_seen_through_when_its_caller_hangs_up() -> None:
    """A server's handler is cancelled with its connection (kafka_wire.net.peer); a write must not be left half applied."""
    active = Slow()
    caller = asyncio.create_task(submit(active, Heal()))
    await active.reached.wait()

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    active.may_go_on.set()
    await active.done.wait()

    assert [Heal()] == active.submitted


async def test_what_goes_wrong_reaches_the_caller() -> None:
    """The handlers translate it (ActiveController.submit)."""
    active = active_with(failure=TenureLostError("deposed"))

    with pytest.raises(TenureLostError, match="deposed"):
        await submit(active, Heal())
