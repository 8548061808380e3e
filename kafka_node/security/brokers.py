"""Security of connections to brokers: TLS and SASL as the broker's listener requires, under one identity of the process."""

import logging
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafka_node.security.contexts import client_context
from kafka_node.security.secret_files import SecretFileError, read_password
from kafka_node.security.settings import SecurityProtocol, SecuritySettings
from kafka_wire.net.client import BearerCredentials, Credentials, NodeSettings, SaslCredentials
from kafka_wire.sasl.steps import SaslFailed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """The client side of every connection to a broker."""

    tls: ssl.SSLContext | None = None
    """For listeners with TLS; None: the system's authorities are trusted."""
    sasl: Credentials | None = None
    """For listeners with SASL."""
    _missed: set[str] = field(default_factory=set, repr=False, compare=False)

    def of(self, protocol: str) -> tuple[ssl.SSLContext | None, Credentials | None]:
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
    login: Credentials | None = None
    if settings.broker_sasl_token_file is not None:
        login = _token_of(settings.broker_sasl_token_file)
    if settings.broker_sasl_mechanism and settings.broker_sasl_username and settings.broker_sasl_password_file:
        password = read_password(settings.broker_sasl_password_file)
        login = SaslCredentials(settings.broker_sasl_mechanism, settings.broker_sasl_username, password)
    return BrokerSecurity(client_context(settings.broker_tls), login)


def _token_of(path: Path) -> BearerCredentials:
    """Return credentials whose token is read from a file at each login: another program renews it. Raises ValueError."""
    read_password(path)

    async def token() -> str:
        try:
            return read_password(path)
        except SecretFileError as error:
            raise SaslFailed(str(error)) from None

    return BearerCredentials(token)
