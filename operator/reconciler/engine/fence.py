"""Port that rejects calls after the Lease has expired, for example in a process that was frozen.

The guard is not absolute: a process can be frozen between the check of the clock and the call. Resource versions then reject its writes
to Kubernetes, and a later resync corrects the state of Kafka.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

ALWAYS_OPEN = {"close"}
"""Calls that stay local, and need no Lease."""

PortT = TypeVar("PortT")


class _Fenced:
    """Passes calls on while `is_active()`, and raises what `refusal()` returns otherwise."""

    def __init__(self, port: Any, is_active: Callable[[], bool], refusal: Callable[[], Exception]) -> None:
        self._port = port
        self._is_active = is_active
        self._refusal = refusal

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method: Callable[..., Awaitable[Any]] = getattr(self._port, name)
        if name in ALWAYS_OPEN:
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            if not self._is_active():
                raise self._refusal()
            return await method(*arguments, **named)

        return call


def fenced(port: PortT, is_active: Callable[[], bool], refusal: Callable[[], Exception]) -> PortT:
    """Return the port with a check of the Lease before each call; all of its methods are coroutines."""
    return cast("PortT", _Fenced(port, is_active, refusal))
