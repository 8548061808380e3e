"""Connections of this broker to others, with the security of the listener of brokers, and to KRaft controllers."""

from kafka_node.security.listeners import connection_settings
from kafka_wire.net.client import NodeSettings
from light_broker.control.kraft.options import KRaftOptions
from light_broker.shell.settings_reading import BrokerSettings


def inter_broker_settings(settings: BrokerSettings) -> NodeSettings:
    """Return the settings of connections to the listener of brokers. Raises ValueError for TLS files that cannot be used."""
    listener = settings.inter_broker_listener
    protocol = next(endpoint.security_protocol for endpoint in settings.listeners if endpoint.listener == listener)
    return connection_settings(settings.security[listener], protocol, _base(settings))


def controller_settings(settings: BrokerSettings, options: KRaftOptions) -> NodeSettings:
    """Return the settings of connections to KRaft controllers. Raises ValueError for TLS files that cannot be used."""
    return connection_settings(options.security, options.protocol, _base(settings))


def _base(settings: BrokerSettings) -> NodeSettings:
    return NodeSettings(client_id=f"light-broker-{settings.values.node_id}-to-controller")
