"""A broker as the controller knows it: its registration. Leaves out how it is reached and what it holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one of a broker's listeners is reached."""

    listener: str
    host: str
    port: int
    security_protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One registration of a broker. The same id with another epoch is another life of that broker."""

    id: int
    epoch: int
    """In ZooKeeper mode the registration znode's czxid (KIP-380): requests carry it, an older one is refused."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        """Find the endpoint of a listener by name; None where this broker does not have it."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)
