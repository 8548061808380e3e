"""One run of an action for all callers that wait for it."""

import asyncio
from collections.abc import Awaitable, Callable


class Coalesced:
    """An asynchronous action whose effect covers everything that was done before it began, such as a flush."""

    def __init__(self, action: Callable[[], Awaitable[None]]) -> None:
        self._action = action
        self._lock = asyncio.Lock()
        self._begun = 0
        self._error: Exception | None = None
        """Of the last run."""

    async def run(self) -> None:
        """Return after a run that began after this call; callers during a run share the next one. Raises what that run raises.

        A run that has begun goes on when its caller is cancelled.
        """
        await asyncio.shield(asyncio.ensure_future(self._run_after(self._begun)))

    async def _run_after(self, begun: int) -> None:
        async with self._lock:
            if self._begun == begun:
                self._begun += 1
                self._error = None
                try:
                    await self._action()
                except Exception as error:
                    self._error = error
                    raise
            elif self._error is not None:
                raise self._error
