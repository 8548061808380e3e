"""Conversion of the options of `steward controller` to the settings of its process."""

from collections.abc import Sequence

from controller_core.shell.settings import (
    AuthorizerSettings,
    ControllerSettings,
    LeaderBalance,
    ZooKeeperSecurity,
    parse_listener,
)
from kafka_node.security.settings import ClientAuth, SecuritySettings, TlsFiles
from kafka_zookeeper.settings import ZooKeeperSettings
from steward.client_security import broker_tls_files
from steward.options.controller import ControllerOptions, LeaderBalanceOptions
from steward.options.security import (
    AuthorizerOptions,
    BrokerSecurityOptions,
    ListenerSecurityOptions,
    ZooKeeperSecurityOptions,
)


def controller_settings(
    zookeeper: str,
    listener: Sequence[str],
    options: ControllerOptions,
    balance: LeaderBalanceOptions,
    security: SecuritySettings,
    authorizer: AuthorizerOptions,
    zookeeper_connection: ZooKeeperSecurity,
) -> ControllerSettings:
    """Build the settings. Raises ValueError with the option or value that is wrong."""
    ZooKeeperSettings(zookeeper, options.session_timeout_ms)
    listeners = tuple(map(parse_listener, listener))
    return ControllerSettings(
        zookeeper,
        options.controller_id,
        listeners,
        (options.inter_broker_listener or listeners[0].name).upper(),
        options.session_timeout_ms,
        options.rack,
        options.metrics_host,
        options.metrics_port,
        LeaderBalance(
            balance.auto_leader_rebalance_enable,
            balance.leader_imbalance_per_broker_percentage,
            balance.leader_imbalance_check_interval_seconds,
        ),
        security,
        AuthorizerSettings(
            authorizer.authorizer, frozenset(authorizer.super_user or ()), authorizer.allow_everyone_if_no_acl
        ),
        options.ignore_topic_policies,
        zookeeper_connection,
    )


def security_settings(listeners: ListenerSecurityOptions, brokers: BrokerSecurityOptions) -> SecuritySettings:
    """Build the security settings of listeners and connections to brokers. Raises ValueError."""
    return SecuritySettings(
        tls=TlsFiles(certificate=listeners.tls_certificate, key=listeners.tls_key, ca=listeners.tls_ca),
        tls_client_auth=ClientAuth(listeners.tls_client_auth),
        tls_principal_mapping_rules=listeners.tls_principal_mapping_rules,
        sasl_mechanisms=tuple(listeners.sasl_mechanism or ()),
        sasl_users_files=tuple(listeners.sasl_users_file or ()),
        connections_max_reauth_ms=listeners.connections_max_reauth_ms,
        broker_tls=broker_tls_files(brokers),
        broker_sasl_mechanism=brokers.broker_sasl_mechanism,
        broker_sasl_username=brokers.broker_sasl_username,
        broker_sasl_password_file=brokers.broker_sasl_password_file,
        broker_sasl_token_file=brokers.broker_sasl_token_file,
    )


def zookeeper_security(options: ZooKeeperSecurityOptions) -> ZooKeeperSecurity:
    """Build the security settings of the connection to ZooKeeper. Raises ValueError."""
    return ZooKeeperSecurity(
        tls=_zookeeper_tls(options), digest_file=options.zookeeper_digest_file, set_acl=options.zookeeper_set_acl
    )


def _zookeeper_tls(options: ZooKeeperSecurityOptions) -> TlsFiles | None:
    """Return None where TLS is not used; a TLS file implies TLS."""
    if not (options.zookeeper_tls or options.zookeeper_tls_ca or options.zookeeper_tls_certificate):
        return None
    return TlsFiles(
        certificate=options.zookeeper_tls_certificate, key=options.zookeeper_tls_key, ca=options.zookeeper_tls_ca
    )
