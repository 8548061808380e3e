"""TLS and SASL of each listener, built once at the start."""

import ssl
from dataclasses import dataclass

from kafka_node.security.contexts import listener_context
from kafka_node.security.credentials import CredentialSource, ListenerCredentials, UsersFiles
from kafka_node.security.settings import SecurityProtocol, SecuritySettings
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
