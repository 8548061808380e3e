"""Connections of this broker to others: with the security of the listener of brokers."""

from kafka_node.security.contexts import client_context
from kafka_wire.net.client import NodeSettings, SaslCredentials
from light_broker.shell.settings_reading import BrokerSettings


def inter_broker_settings(settings: BrokerSettings) -> NodeSettings:
    """Return the settings of connections to the listener of brokers. Raises ValueError for TLS files that cannot be used."""
    listener = settings.inter_broker_listener
    security = settings.security[listener]
    protocol = next(one.security_protocol for one in settings.listeners if one.listener == listener)
    tls = None
    if protocol.is_encrypted:
        tls = client_context(security.tls)
        tls.check_hostname = security.tls_verifies_host_names
    login = security.login
    sasl = None if login is None else SaslCredentials(login.mechanism, login.username, login.password)
    return NodeSettings(client_id=f"light-broker-{settings.values.node_id}-to-controller", ssl=tls, sasl=sasl)
