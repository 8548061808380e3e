"""How we reach brokers: by what their listener speaks, as their registration says, under one name of ours.

Leaves out which broker and what for.
"""

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
    """Our side of every connection to a broker."""

    tls: ssl.SSLContext | None = None
    """For listeners that speak TLS; with none the system's authorities are trusted."""
    sasl: SaslCredentials | None = None
    """For listeners that ask for SASL."""
    _missed: set[str] = field(default_factory=set, repr=False, compare=False)

    def of(self, protocol: str) -> tuple[ssl.SSLContext | None, SaslCredentials | None]:
        """Give what a connection by that protocol takes."""
        spoken = SecurityProtocol(protocol)
        if spoken.asks_for_sasl and self.sasl is None and protocol not in self._missed:
            self._missed.add(protocol)
            log.error("brokers ask for SASL, and no credentials are given", extra={"security_protocol": protocol})
        tls = (self.tls or ssl.create_default_context()) if spoken.is_encrypted else None
        return tls, self.sasl if spoken.asks_for_sasl else None

    def settings(self, base: NodeSettings, protocol: str) -> NodeSettings:
        """Give a node's settings with it."""
        tls, sasl = self.of(protocol)
        return replace(base, ssl=tls, sasl=sasl)


UNPROTECTED = BrokerSecurity()
"""Nothing is known of us but what the system trusts."""


def broker_security(settings: SecuritySettings) -> BrokerSecurity:
    """Read the files. Raises ValueError."""
    login = None
    if settings.broker_sasl_mechanism and settings.broker_sasl_username and settings.broker_sasl_password_file:
        password = read_password(settings.broker_sasl_password_file)
        login = SaslCredentials(settings.broker_sasl_mechanism, settings.broker_sasl_username, password)
    return BrokerSecurity(client_context(settings.broker_tls), login)
