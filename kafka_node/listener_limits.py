"""Limits of the listeners, from Kafka's settings of the network, which may change while the process runs.

num.network.threads has no effect: one event loop serves all connections (ADR 51). Source: SocketServerConfigs, and ConnectionQuotas for the
values that a listener may have of its own and for names of hosts.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.security.listener_settings import LISTENER_PREFIX, is_known, without_prefix
from kafka_wire.net.connection_quotas import ConnectionQuotas
from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.server import ServerLimits

log = logging.getLogger(__name__)

OVERRIDES = "max.connections.per.ip.overrides"
CREATION_RATE = "max.connection.creation.rate"
MAX_CONNECTIONS = "max.connections"
PER_ADDRESS = "max.connections.per.ip"
IDLE = "connections.max.idle.ms"
FRAME = "socket.request.max.bytes"
NAMES = frozenset({OVERRIDES, CREATION_RATE, MAX_CONNECTIONS, PER_ADDRESS, IDLE, FRAME})
"""Settings that `listener_limits` reads."""
_DYNAMIC = (OVERRIDES, CREATION_RATE, MAX_CONNECTIONS, PER_ADDRESS)
"""Those of them that may change while the process runs."""
_OF_LISTENERS = frozenset({CREATION_RATE, MAX_CONNECTIONS})
"""Settings that a listener may have of its own, with the prefix listener.name.LISTENER."""


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Limits of the listeners of a process, and those of connections that they share."""

    by_listener: Mapping[str, ServerLimits]
    quotas: ConnectionQuotas


def is_of_listener(name: str) -> bool:
    """Return whether a listener may have this setting of its own: one of limits, or of TLS and SASL."""
    return is_known(name) or without_prefix(name) in _OF_LISTENERS


def listener_limits(values: Settings, listeners: Iterable[str]) -> ListenerLimits:
    """Return the limits of listeners. Raises SettingError for values that no limit can have, and hosts that are not known."""
    return ListenerLimits({name: _server_limits(values, name) for name in listeners}, _connection_quotas(values))


class LimitedServer(Protocol):
    """A listener."""

    def change_limits(self, limits: ServerLimits) -> None:
        """Apply other limits."""


class DynamicLimits:
    """Applies settings that change while the process runs, in the order in which they change."""

    def __init__(self, limits: ListenerLimits, servers: Mapping[str, LimitedServer]) -> None:
        """`limits` are those of the properties file, `servers` the open listeners by name."""
        self._limits = limits
        self._servers = servers
        self._current: tuple[str | None, ...] | None = None
        self._wanted: Settings | None = None
        self._task: asyncio.Task[None] | None = None

    def follow(self, values: Settings) -> None:
        """Apply settings if they differ from the current ones. Values that no limit can have are logged, and change nothing."""
        texts = tuple(values.text(name) for name in _DYNAMIC)
        if texts == self._current:
            return
        self._current, self._wanted = texts, values
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._apply(), name="change limits of listeners")

    async def _apply(self) -> None:
        while self._wanted is not None:
            values, self._wanted = self._wanted, None
            try:
                # A thread, since hosts are resolved.
                found = await asyncio.to_thread(listener_limits, values, list(self._servers))
            except SettingError as error:
                log.error("Limits of connections did not change", extra={"error": str(error)})
                continue
            self._limits.quotas.change_limits(found.quotas)
            for name, server in self._servers.items():
                server.change_limits(found.by_listener[name])

    def close(self) -> None:
        """End the change that is being applied."""
        if self._task is not None:
            self._task.cancel()


def _server_limits(values: Settings, listener: str) -> ServerLimits:
    idle_ms = values.number(IDLE)
    return ServerLimits(
        max_frame_bytes=_positive(values, FRAME),
        max_connections=_positive(values, MAX_CONNECTIONS, listener),
        max_connection_creation_rate=_positive(values, CREATION_RATE, listener),
        idle_timeout_ms=idle_ms if idle_ms > 0 else NEVER_MS,
    )


_LIMIT = re.compile(r"\s*[0-9]{1,10}\s*")
"""Limit of connections in text; Kafka's largest INT has ten digits."""

NEVER_MS = 2**31 - 1
"""Idle time that no connection reaches: a negative connections.max.idle.ms means no limit."""


def request_channel(values: Settings) -> RequestChannel:
    """Return the limits of queued requests."""
    max_bytes = values.number("queued.max.request.bytes")
    return RequestChannel(values.number("queued.max.requests"), max_bytes if max_bytes > 0 else None)


def _connection_quotas(values: Settings) -> ConnectionQuotas:
    entries = filter(None, (entry.strip() for entry in (values.text(OVERRIDES) or "").split(",")))
    return ConnectionQuotas(
        values.number(MAX_CONNECTIONS),
        values.number(PER_ADDRESS),
        dict(map(_override, entries)),
        float(_positive(values, CREATION_RATE)),
    )


def _positive(values: Settings, name: str, listener: str | None = None) -> int:
    """Return a limit: the listener's own value, else that of the broker."""
    own = f"{LISTENER_PREFIX}{listener.lower()}.{name}" if listener is not None else name
    text = values.file.get(own)
    value = values.number(name) if text is None else SETTINGS[name].read(text)
    assert isinstance(value, int), name
    if value <= 0:
        raise SettingError(
            f"{name if text is None else own} is {value}, which accepts no connection. Set it to at least 1."
        )
    return value


def _override(entry: str) -> tuple[str, int]:
    """Return the address and limit of an entry HOST:LIMIT."""
    host, colon, limit = entry.rpartition(":")
    if not colon or not host or not _LIMIT.fullmatch(limit):
        raise SettingError(f"{OVERRIDES} has {entry!r}, which is not HOST:LIMIT.")
    return _address(host.strip()), int(limit)


def _address(host: str) -> str:
    """Return the first address of a host, IPv4 before IPv6 (Java's InetAddress.getByName)."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingError(
            f"{OVERRIDES} has the host {host!r}, whose address is not known: {error}. Correct the name, or write its address."
        ) from error
    family, _, _, _, address = min(found, key=lambda address: address[0] is not socket.AF_INET)
    assert family in {socket.AF_INET, socket.AF_INET6}, family
    return str(address[0])
