"""Security of connections to brokers: TLS and SASL as the broker's listener requires, under one identity of the process."""

import logging
import ssl
from dataclasses import dataclass, field, replace

from kafka_node.security.contexts import client_context
from kafka_node.security.secret_files import read_password
from kafka_node.security.settings import SecurityProtocol, SecuritySettings
from kafka_wire.net.client import NodeSettings, SaslCredentials

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """The client side of every connection to a broker."""

    tls: ssl.SSLContext | None = None
    """For listeners with TLS; None: the system's authorities are trusted."""
    sasl: SaslCredentials | None = None
    """For listeners with SASL."""
    _missed: set[str] = field(default_factory=set, repr=False, compare=False)

    def of(self, protocol: str) -> tuple[ssl.SSLContext | None, SaslCredentials | None]:
        """Return the TLS context and the SASL credentials of a connection by a security protocol."""
        spoken = SecurityProtocol(protocol)
        if spoken.asks_for_sasl and self.sasl is None and protocol not in self._missed:
            self._missed.add(protocol)
            log.error("Brokers require SASL, but no credentials are configured", extra={"security_protocol": protocol})
        tls = (self.tls or ssl.create_default_context()) if spoken.is_encrypted else None
        return tls, self.sasl if spoken.asks_for_sasl else None

    def settings(self, base: NodeSettings, protocol: str) -> NodeSettings:
        """Return a node's settings with TLS and SASL for a security protocol."""
        tls, sasl = self.of(protocol)
        return replace(base, ssl=tls, sasl=sasl)


UNPROTECTED = BrokerSecurity()
"""No identity, and the system's authorities."""


def broker_security(settings: SecuritySettings) -> BrokerSecurity:
    """Read the files. Raises ValueError."""
    login = None
    if settings.broker_sasl_mechanism and settings.broker_sasl_username and settings.broker_sasl_password_file:
        password = read_password(settings.broker_sasl_password_file)
        login = SaslCredentials(settings.broker_sasl_mechanism, settings.broker_sasl_username, password)
    return BrokerSecurity(client_context(settings.broker_tls), login)
