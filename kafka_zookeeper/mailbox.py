"""The one way from ZooKeeper's thread into the event loop: in order, and with one wake-up for many letters.

`call_soon_threadsafe` writes a byte to wake the loop; at thousands of answers a second that is most of the work. So letters
are collected and the loop is woken once for all that have come. Left out: any knowledge of what is delivered.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

MAX_LETTERS_PER_TURN = 1_000
"""Delivered before the loop gets its turn for everything else: about a millisecond's work."""


class Mailbox:
    """Calls from any thread, made in one loop's thread, in the order they were posted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._letters: deque[Callable[[], object]] = deque()
        self._awaited = False
        """A delivery is on its way. Cleared before letters are taken: one that is posted meanwhile may wake the loop for
        nothing, but none is ever left lying."""

    def post(self, letter: Callable[[], object]) -> None:
        """Have `letter` called in the loop's thread; without effect once the loop is closed."""
        self._letters.append(letter)
        if self._awaited:
            return
        self._awaited = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            log.debug("the event loop is closed, nobody is left to be told")

    def _deliver(self) -> None:
        self._awaited = False
        try:
            for _ in range(min(len(self._letters), MAX_LETTERS_PER_TURN)):
                self._letters.popleft()()
        finally:  # a letter that raises is the loop's to report, and must not hold up those behind it
            if self._letters and not self._awaited:
                self._awaited = True
                self._loop.call_soon(self._deliver)
