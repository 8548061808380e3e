"""TLS and SASL of each listener, and of connections to listeners of other nodes, built once at the start."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafka_node.security.contexts import client_context, listener_context
from kafka_node.security.credentials import CredentialSource, ListenerCredentials, UsersFiles
from kafka_node.security.listener_settings import ListenerSecurity
from kafka_node.security.settings import SecurityProtocol, SecuritySettings
from kafka_wire.net.client import NodeSettings, SaslCredentials
from kafka_wire.net.principal_rules import DEFAULT_RULES, PrincipalRules
from kafka_wire.net.server import SaslServer


@dataclass(frozen=True, slots=True)
class Demands:
    """TLS and SASL of one listener."""

    tls: ssl.SSLContext | None = None
    sasl: SaslServer | None = None
    principal_rules: PrincipalRules = DEFAULT_RULES
    """Principals of clients by their certificates."""


NOTHING = Demands()
"""A PLAINTEXT listener."""


def demands_of(protocols: set[str], settings: SecuritySettings, scram: CredentialSource) -> dict[str, Demands]:
    """Make them by security protocol; `scram` has the users of SCRAM. Raises ValueError for files that cannot be used."""
    spoken = sorted(map(SecurityProtocol, protocols))
    tls = None
    if any(protocol.is_encrypted for protocol in spoken):
        tls = listener_context(settings.tls, settings.tls_client_auth)
    sasl = None
    if any(protocol.asks_for_sasl for protocol in spoken):
        users = UsersFiles(settings.sasl_users_files) if settings.sasl_users_files else None
        sasl = SaslServer(
            mechanisms=settings.sasl_mechanisms,
            credentials=ListenerCredentials(users, scram),
            session_lifetime_ms=settings.connections_max_reauth_ms,
        )
    rules = PrincipalRules.parse(settings.tls_principal_mapping_rules)
    return {
        str(protocol): Demands(
            tls if protocol.is_encrypted else None,
            sasl if protocol.asks_for_sasl else None,
            rules,
        )
        for protocol in spoken
    }


@dataclass(frozen=True, slots=True)
class _Users:
    """The users of PLAIN in the settings. Implements PlainUsers."""

    passwords: Mapping[str, str] = field(repr=False)

    def password(self, user: str) -> str | None:
        """Return a user's password; None: there is no such user."""
        return self.passwords.get(user)


def demands_of_listener(security: ListenerSecurity, protocol: SecurityProtocol, scram: CredentialSource) -> Demands:
    """Make them of the settings of one listener. Raises ValueError for files that cannot be used."""
    sasl = None
    if protocol.asks_for_sasl:
        sasl = SaslServer(
            mechanisms=security.sasl_mechanisms,
            credentials=ListenerCredentials(_Users(security.plain_users), scram),
            session_lifetime_ms=security.connections_max_reauth_ms,
        )
    tls = listener_context(security.tls, security.tls_client_auth) if protocol.is_encrypted else None
    return Demands(tls, sasl, PrincipalRules.parse(security.tls_principal_mapping_rules))


def connection_settings(security: ListenerSecurity, protocol: SecurityProtocol, base: NodeSettings) -> NodeSettings:
    """Return the settings of connections to a listener of other nodes. Raises ValueError for files that cannot be used."""
    tls = None
    if protocol.is_encrypted:
        tls = client_context(security.tls)
        tls.check_hostname = security.tls_verifies_host_names
    login = security.login
    sasl = None if login is None else SaslCredentials(login.mechanism, login.username, login.password)
    return replace(base, ssl=tls, sasl=sasl)
