"""Broker registrations."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one listener of a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One registration of a broker. The same id with another epoch is another incarnation of that broker."""

    id: int
    epoch: int
    """In ZooKeeper mode the registration znode's czxid (KIP-380): requests carry it, and older ones are refused."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener by name; None if the broker does not have that listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)
