"""Activation gate: requests wait while this process has won controllership and still loads the cluster."""

import asyncio
from contextlib import suppress

ACTIVATION_TIMEOUT_S = 10.0
"""Maximum wait of a caller while the cluster is loaded; afterwards it gets NOT_CONTROLLER and retries."""


class ActivationGate:
    """Closed while this process holds `/controller` and has not loaded the cluster yet."""

    def __init__(self) -> None:
        self._is_loading = False
        self._loaded = asyncio.Event()

    async def wait(self) -> None:
        """Wait, for a limited time, while the cluster is loaded: brokers name this process as the controller already."""
        if self._is_loading:
            with suppress(TimeoutError):
                async with asyncio.timeout(ACTIVATION_TIMEOUT_S):
                    await self._loaded.wait()

    def begin(self) -> None:
        """Close the gate: this process has won the controller election."""
        self._is_loading = True

    def end(self) -> None:
        """Open the gate: the cluster is loaded, or controllership was lost again."""
        self._is_loading = False
        self._loaded.set()
        self._loaded = asyncio.Event()
