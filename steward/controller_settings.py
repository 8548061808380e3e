"""From the options of `steward controller` to the settings of its process. Leaves out what typer checks by itself."""

from collections.abc import Sequence

from controller_core.shell.settings import AuthorizerSettings, ControllerSettings, LeaderBalance, parse_listener
from controller_core.shell.zookeeper.security import ZooKeeperSecurity
from kafka_node.security.settings import ClientAuth, SecuritySettings, TlsFiles
from kafka_zookeeper.settings import ZooKeeperSettings
from steward.options.controller import BalanceOptions, PlaceOptions
from steward.options.security import (
    AuthorizerOptions,
    BrokerSecurityOptions,
    ListenerSecurityOptions,
    ZooKeeperSecurityOptions,
)


def controller_settings(
    zookeeper: str,
    listener: Sequence[str],
    place: PlaceOptions,
    balance: BalanceOptions,
    security: SecuritySettings,
    authorizer: AuthorizerOptions,
    zookeeper_connection: ZooKeeperSecurity,
) -> ControllerSettings:
    """Put settings together. Raises ValueError, which says what cannot be."""
    ZooKeeperSettings(zookeeper, place.session_timeout_ms)
    listeners = tuple(map(parse_listener, listener))
    return ControllerSettings(
        zookeeper,
        place.controller_id,
        listeners,
        (place.inter_broker_listener or listeners[0].name).upper(),
        place.session_timeout_ms,
        place.rack,
        place.metrics_host,
        place.metrics_port,
        LeaderBalance(
            balance.auto_leader_rebalance_enable,
            balance.leader_imbalance_per_broker_percentage,
            balance.leader_imbalance_check_interval_seconds,
        ),
        security,
        AuthorizerSettings(
            authorizer.authorizer, frozenset(authorizer.super_user or ()), authorizer.allow_everyone_if_no_acl
        ),
        place.ignore_topic_policies,
        zookeeper_connection,
    )


def security_settings(listeners: ListenerSecurityOptions, brokers: BrokerSecurityOptions) -> SecuritySettings:
    """Put settings of security together. Raises ValueError, which says what cannot be."""
    return SecuritySettings(
        tls=TlsFiles(certificate=listeners.tls_certificate, key=listeners.tls_key, ca=listeners.tls_ca),
        tls_client_auth=ClientAuth(listeners.tls_client_auth),
        tls_principal_mapping_rules=listeners.tls_principal_mapping_rules,
        sasl_mechanisms=tuple(listeners.sasl_mechanism or ()),
        sasl_users_file=listeners.sasl_users_file,
        connections_max_reauth_ms=listeners.connections_max_reauth_ms,
        broker_tls=TlsFiles(
            certificate=brokers.broker_tls_certificate, key=brokers.broker_tls_key, ca=brokers.broker_tls_ca
        ),
        broker_sasl_mechanism=brokers.broker_sasl_mechanism,
        broker_sasl_username=brokers.broker_sasl_username,
        broker_sasl_password_file=brokers.broker_sasl_password_file,
    )


def zookeeper_security(options: ZooKeeperSecurityOptions) -> ZooKeeperSecurity:
    """Put settings of security for the connection to ZooKeeper together. Raises ValueError."""
    return ZooKeeperSecurity(
        tls=_zookeeper_tls(options), digest_file=options.zookeeper_digest_file, set_acl=options.zookeeper_set_acl
    )


def _zookeeper_tls(options: ZooKeeperSecurityOptions) -> TlsFiles | None:
    """None: TLS is not spoken. A file for it says that it is."""
    if not (options.zookeeper_tls or options.zookeeper_tls_ca or options.zookeeper_tls_certificate):
        return None
    return TlsFiles(
        certificate=options.zookeeper_tls_certificate, key=options.zookeeper_tls_key, ca=options.zookeeper_tls_ca
    )
