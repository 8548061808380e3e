"""Limits of the listeners, from Kafka's settings of the network.

num.network.threads has no effect: one event loop serves all connections (ADR 51). Source: SocketServerConfigs.
"""

from dataclasses import dataclass

from kafka_node.configs.setting_rules import SettingError
from kafka_wire.net.connection_quotas import ConnectionQuotas
from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.server import Buffers, ServerLimits
from light_broker.core.settings import Settings

OVERRIDES = "max.connections.per.ip.overrides"


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Limits that all listeners of a process share."""

    limits: ServerLimits
    buffers: Buffers
    channel: RequestChannel
    quotas: ConnectionQuotas


def server_limits(values: Settings) -> ServerLimits:
    """Return the limits of each listener."""
    idle_ms = values.number("connections.max.idle.ms")
    return ServerLimits(
        max_frame_bytes=values.number("socket.request.max.bytes"),
        max_connections=values.number("max.connections"),
        idle_timeout_ms=idle_ms if idle_ms > 0 else NEVER_MS,
    )


NEVER_MS = 2**31 - 1
"""Idle time that no connection reaches: a negative connections.max.idle.ms means no limit."""


def request_channel(values: Settings) -> RequestChannel:
    """Return the limits of queued requests."""
    max_bytes = values.number("queued.max.request.bytes")
    return RequestChannel(values.number("queued.max.requests"), max_bytes if max_bytes > 0 else None)


def connection_quotas(values: Settings) -> ConnectionQuotas:
    """Return the limits of connections. Raises SettingError for malformed overrides."""
    return ConnectionQuotas(
        values.number("max.connections"),
        values.number("max.connections.per.ip"),
        dict(map(_override, filter(None, (values.text(OVERRIDES) or "").split(",")))),
        float(values.number("max.connection.creation.rate")),
    )


def _override(entry: str) -> tuple[str, int]:
    """Return the address and limit of an entry ADDRESS:LIMIT."""
    host, colon, limit = entry.strip().rpartition(":")
    if not colon or not host or not limit.strip().isdigit():
        raise SettingError(f"{OVERRIDES} has {entry.strip()!r}, which is not ADDRESS:LIMIT.")
    return host.strip(), int(limit)
