"""TLS and SASL of a quorum's controller, made of its settings: of its listeners, and of its connections to other controllers."""

from controller_core.shell.quorum.settings import QuorumSettings
from kafka_node.security import credentials, listeners
from kafka_wire.net.client import NodeSettings


def listener_demands(settings: QuorumSettings, scram: credentials.CredentialSource) -> dict[str, listeners.Demands]:
    """Make TLS and SASL of each listener, by its name. `scram` has the users of SCRAM. Raises ValueError for unusable files."""
    return {
        endpoint.listener: listeners.demands_of_listener(
            settings.security[endpoint.listener], endpoint.security_protocol, scram
        )
        for endpoint in settings.listeners
    }


def member_settings(settings: QuorumSettings, base: NodeSettings) -> NodeSettings:
    """Return the settings of connections to other controllers: those of the first controller listener. Raises ValueError."""
    name = settings.controller_listener_names[0]
    protocol = next(listener.security_protocol for listener in settings.listeners if listener.listener == name)
    return listeners.connection_settings(settings.security[name], protocol, base)
