"""A port that is used only while the Lease holds: what a holder that was frozen wakes up to do is not sent.

It is no fence that holds for ever: a process can be frozen between the look at its clock and the call. What goes out then meets the
versions that every write to Kubernetes is bound to, and in Kafka what a later resync puts right.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

ALWAYS_OPEN = {"close"}
"""Calls that reach nobody."""

PortT = TypeVar("PortT")


class _Fenced:
    """Passes calls on while `holds()`, and raises what `refusal()` returns otherwise."""

    def __init__(self, port: Any, holds: Callable[[], bool], refusal: Callable[[], Exception]) -> None:
        self._port = port
        self._holds = holds
        self._refusal = refusal

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method: Callable[..., Awaitable[Any]] = getattr(self._port, name)
        if name in ALWAYS_OPEN:
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            if not self._holds():
                raise self._refusal()
            return await method(*arguments, **named)

        return call


def fenced(port: PortT, holds: Callable[[], bool], refusal: Callable[[], Exception]) -> PortT:
    """Return the port behind a look at the clock; all of its methods are coroutines."""
    return cast("PortT", _Fenced(port, holds, refusal))
