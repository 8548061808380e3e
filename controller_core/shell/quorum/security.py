"""TLS and SASL of a quorum's controller, made of its settings: of its listeners, and of its connections to other controllers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controller_core.shell.quorum.settings import ListenerSecurity, QuorumSettings
from kafka_node.security.contexts import client_context, listener_context
from kafka_node.security.credentials import CredentialSource, ListenerCredentials
from kafka_node.security.listeners import Demands
from kafka_node.security.settings import SecurityProtocol
from kafka_wire.net.client import NodeSettings, SaslCredentials
from kafka_wire.net.principal_rules import PrincipalRules
from kafka_wire.net.server import SaslServer


@dataclass(frozen=True, slots=True)
class _Users:
    """The users of PLAIN in the settings. Implements PlainUsers."""

    passwords: Mapping[str, str] = field(repr=False)

    def password(self, user: str) -> str | None:
        """Return a user's password; None: there is no such user."""
        return self.passwords.get(user)


def listener_demands(settings: QuorumSettings, scram: CredentialSource) -> dict[str, Demands]:
    """Make TLS and SASL of each listener, by its name. `scram` has the users of SCRAM. Raises ValueError for unusable files."""
    return {
        endpoint.listener: _demands(settings.security[endpoint.listener], endpoint.security_protocol, scram)
        for endpoint in settings.listeners
    }


def _demands(security: ListenerSecurity, protocol: SecurityProtocol, scram: CredentialSource) -> Demands:
    sasl = None
    if protocol.asks_for_sasl:
        sasl = SaslServer(
            mechanisms=security.sasl_mechanisms,
            credentials=ListenerCredentials(_Users(security.plain_users), scram),
            session_lifetime_ms=security.connections_max_reauth_ms,
        )
    tls = listener_context(security.tls, security.tls_client_auth) if protocol.is_encrypted else None
    return Demands(tls, sasl, PrincipalRules.parse(security.tls_principal_mapping_rules))


def member_settings(settings: QuorumSettings, base: NodeSettings) -> NodeSettings:
    """Return the settings of connections to other controllers: those of the first controller listener. Raises ValueError."""
    name = settings.controller_listener_names[0]
    security = settings.security[name]
    protocol = next(one.security_protocol for one in settings.listeners if one.listener == name)
    tls = None
    if protocol.is_encrypted:
        tls = client_context(security.tls)
        tls.check_hostname = security.tls_verifies_host_names
    login = security.login
    sasl = None if login is None else SaslCredentials(login.mechanism, login.username, login.password)
    return replace(base, ssl=tls, sasl=sasl)
