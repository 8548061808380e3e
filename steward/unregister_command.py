"""`steward controller unregister-broker`: tell the controller of a cluster that a broker never returns.

Kafka's own kafka-cluster sends UnregisterBroker to any broker, and brokers in ZooKeeper mode do not know it; this command asks
the bootstrap server for the controller and sends it there. Leaves out what the controller does (`zookeeper_mode.stray_logs`).
"""

import asyncio
import sys

from controller_core.model.ids import NO_BROKER
from kafka_node.security.brokers import BrokerSecurity, broker_security
from kafka_node.security.settings import SecuritySettings, TlsFiles
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.node import Node, NodeSettings
from steward.options.security import BrokerSecurityOptions

TIMEOUT_MS = 30_000
"""Kafka's own time-out of an Admin call's request (request.timeout.ms)."""
NODE_SETTINGS = NodeSettings(client_id="steward-unregister-broker")
EXIT_OK, EXIT_FAILED = 0, 1


class UnregisterError(Exception):
    """The broker was not unregistered; the words say why and what to do."""


def run_unregister(broker: int, bootstrap_server: str, protocol: str, options: BrokerSecurityOptions) -> int:
    """Unregister a broker; returns the exit code. Raises ValueError where the options are wrong."""
    security = client_security(options)
    if protocol.startswith("SASL") and security.sasl is None:
        raise ValueError(f"{protocol} needs a SASL mechanism, a user name and a password file")
    try:
        asyncio.run(unregister(broker, bootstrap_server, security.settings(NODE_SETTINGS, protocol)))
    except UnregisterError as error:
        sys.stderr.write(f"steward controller unregister-broker: {error}\n")
        return EXIT_FAILED
    sys.stdout.write(f"Broker {broker} is unregistered: deletions no longer wait for its logs.\n")
    return EXIT_OK


def client_security(options: BrokerSecurityOptions) -> BrokerSecurity:
    """Read the files that the options name. Raises ValueError."""
    return broker_security(
        SecuritySettings(
            broker_tls=TlsFiles(
                certificate=options.broker_tls_certificate, key=options.broker_tls_key, ca=options.broker_tls_ca
            ),
            broker_sasl_mechanism=options.broker_sasl_mechanism,
            broker_sasl_username=options.broker_sasl_username,
            broker_sasl_password_file=options.broker_sasl_password_file,
        )
    )


async def unregister(broker: int, bootstrap_server: str, settings: NodeSettings) -> None:
    """Find the controller and unregister a broker there. Raises UnregisterError."""
    try:
        host, port = await _controller(bootstrap_server, settings)
        answer = await _call(host, port, settings, ApiKey.UNREGISTER_BROKER, {"broker_id": broker})
    except UnsupportedVersion as error:
        words = "the controller does not serve UnregisterBroker: a Kafka broker may be the controller at present"
        raise UnregisterError(words) from error
    except (ConnectionFailed, WireError) as error:
        raise UnregisterError(f"no answer: {error}") from error
    if answer["error_code"] != ErrorCode.NONE:
        name = ErrorCode(answer["error_code"]).name
        raise UnregisterError(f"{name}: {answer['error_message'] or 'the controller does not say why'}")


async def _controller(bootstrap_server: str, settings: NodeSettings) -> tuple[str, int]:
    host, _, port = bootstrap_server.rpartition(":")
    if not host or not port.isdigit():
        raise UnregisterError(f"{bootstrap_server} is not HOST:PORT")
    found = await _call(host.strip("[]"), int(port), settings, ApiKey.METADATA, {"topics": []})
    controller = found["controller_id"]
    for node in found["brokers"]:
        if node["node_id"] == controller != NO_BROKER:
            return node["host"], node["port"]
    raise UnregisterError(f"{bootstrap_server} knows of no controller at present; try again")


async def _call(host: str, port: int, settings: NodeSettings, key: ApiKey, body: Body) -> Body:
    node = Node(host, port, settings)
    try:
        return await node.call(key, body, timeout_ms=TIMEOUT_MS)
    finally:
        await node.close()
