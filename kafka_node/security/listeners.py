"""What each listener demands, made once at the start. Leaves out the listeners themselves (front)."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.shell.security.contexts import listener_context
from controller_core.shell.security.credentials import ListenerCredentials, UsersFile
from controller_core.shell.security.settings import SecurityProtocol, SecuritySettings
from kafka_wire.net.principal_rules import AS_IT_IS, PrincipalRules
from kafka_wire.net.server import SaslServer
from kafka_zookeeper.session import ZooKeeperSession


@dataclass(frozen=True, slots=True)
class Demands:
    """Of one listener."""

    tls: ssl.SSLContext | None = None
    sasl: SaslServer | None = None
    principal_rules: PrincipalRules = AS_IT_IS
    """What clients are called by their certificates."""


NOTHING = Demands()
"""A listener that speaks PLAINTEXT."""


def demands_of(
    protocols: set[str], settings: SecuritySettings, session: Callable[[], ZooKeeperSession | None]
) -> dict[str, Demands]:
    """Make them by security protocol. Raises ValueError for files that cannot be used."""
    spoken = sorted(map(SecurityProtocol, protocols))
    tls = None
    if any(protocol.is_encrypted for protocol in spoken):
        tls = listener_context(settings.tls, settings.tls_client_auth)
    sasl = None
    if any(protocol.asks_for_sasl for protocol in spoken):
        users = None if settings.sasl_users_file is None else UsersFile(settings.sasl_users_file)
        sasl = SaslServer(
            mechanisms=settings.sasl_mechanisms,
            credentials=ListenerCredentials(users, session),
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
