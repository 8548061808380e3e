"""Limits of a server for its peers. inbound.py enforces those of one connection, server.py those of all connections."""

from dataclasses import dataclass, fields

from kafka_wire.frames import MAX_FRAME_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server. Each is checked before the bytes in question are interpreted."""

    max_frame_bytes: int = MAX_FRAME_BYTES
    """Size of a request frame, and total size of the requests of one connection that are being handled: reading pauses there."""

    max_connections: int = 1_000
    """Open connections; further ones are closed at once. Brokers and the clients that need the controller are far fewer."""

    max_connection_creation_rate: float = 2**31 - 1
    """Connections that the server accepts a second (Kafka's max.connection.creation.rate of a listener; this is its default)."""

    max_in_flight: int = 64
    """Requests of one connection that are handled concurrently; reading pauses there. Kafka's clients send at most 5
    (max.in.flight.requests.per.connection)."""

    max_buffered_bytes: int = 256 * 1024 * 1024
    """Memory for requests and responses of all connections; above it, the connection that holds most is closed. Two of the largest
    frames fit. A process with several servers, or with a memory limit, passes shared Buffers instead."""

    idle_timeout_ms: int = 600_000
    """A connection without a running request is closed after this time without traffic (Kafka's connections.max.idle.ms)."""

    frame_timeout_ms: int = 60_000
    """Time for completing a frame after its first byte, and for reading responses; otherwise a peer that sends or reads a few bytes at
    a time would keep its connection forever."""

    tls_handshake_timeout_ms: int = 10_000
    """Time for the TLS handshake."""

    authentication_timeout_ms: int = 30_000
    """Time for authentication, from the end of the TLS handshake."""

    grace_ms: int = 5_000
    """Time that closing the server waits for running requests."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise ValueError(f"{field.name} must be greater than 0, found {getattr(self, field.name)}")
