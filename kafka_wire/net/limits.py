"""What a server allows its peers: every bound in one value.

Left out: keeping to them (inbound.py for one connection, server.py for all of them).
"""

from dataclasses import dataclass, fields

from kafka_wire.frames import MAX_FRAME_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bounds of one server. Each is checked before the bytes that it is about are read as anything."""

    max_frame_bytes: int = MAX_FRAME_BYTES
    """A request frame, and the requests of one connection that are being handled, together: at this, reading pauses."""

    max_connections: int = 1_000
    """Open connections; one more is closed at once. Brokers, and clients that looked up the controller, come far below."""

    max_in_flight: int = 64
    """Requests of one connection that are handled at the same time; at this, reading pauses. Kafka's own clients
    have 5 at most (max.in.flight.requests.per.connection)."""

    max_buffered_bytes: int = 256 * 1024 * 1024
    """Requests and responses held for all connections; over it, the connection that holds most is closed. Room for two of the largest
    frames. A process with several servers, or with a memory limit, gives them Buffers of its own instead."""

    idle_timeout_ms: int = 600_000
    """A connection without a request under way may be silent for so long (Kafka's connections.max.idle.ms)."""

    frame_timeout_ms: int = 60_000
    """A frame that has begun must be complete within this, and a peer must take its responses within this; else a
    peer that trickles bytes would hold its connection for good."""

    tls_handshake_timeout_ms: int = 10_000
    """A peer that connects and does not speak TLS is dropped after this."""

    authentication_timeout_ms: int = 30_000
    """A peer that must say who it is and does not is dropped after this, counted from the end of the TLS handshake."""

    grace_ms: int = 5_000
    """How long closing the server waits for requests under way."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise ValueError(f"{field.name} must be above 0, not {getattr(self, field.name)}")
