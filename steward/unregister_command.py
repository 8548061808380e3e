"""`steward controller unregister-broker`: sends UnregisterBroker to the controller of a cluster.

Kafka's kafka-cluster tool sends UnregisterBroker to any broker, but brokers in ZooKeeper mode do not support it. This command
reads the controller's address from the bootstrap server and sends the request there.
"""

import asyncio
import sys

from controller_core.model.ids import NO_BROKER
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.node import Node, NodeSettings
from steward.client_security import client_security
from steward.options.security import BrokerSecurityOptions

TIMEOUT_MS = 30_000
"""The default request timeout of Kafka's Admin client (request.timeout.ms)."""
NODE_SETTINGS = NodeSettings(client_id="steward-unregister-broker")
EXIT_OK, EXIT_FAILED = 0, 1


class UnregisterError(Exception):
    """The broker was not unregistered; the message names the cause and what to do."""


def run_unregister(broker: int, bootstrap_server: str, protocol: str, options: BrokerSecurityOptions) -> int:
    """Unregister a broker and return the exit code. Raises ValueError for wrong options."""
    security = client_security(options, protocol)
    try:
        asyncio.run(unregister(broker, bootstrap_server, security.settings(NODE_SETTINGS, protocol)))
    except UnregisterError as error:
        sys.stderr.write(f"steward controller unregister-broker: {error}\n")
        return EXIT_FAILED
    sys.stdout.write(f"Broker {broker} is unregistered: deletions no longer wait for its logs.\n")
    return EXIT_OK


async def unregister(broker: int, bootstrap_server: str, settings: NodeSettings) -> None:
    """Send UnregisterBroker to the controller. Raises UnregisterError."""
    try:
        host, port = await _controller(bootstrap_server, settings)
        response = await _call(host, port, settings, ApiKey.UNREGISTER_BROKER, {"broker_id": broker})
    except UnsupportedVersion as error:
        message = "the controller does not support UnregisterBroker: a Kafka broker may be the active controller"
        raise UnregisterError(message) from error
    except (ConnectionFailed, WireError) as error:
        raise UnregisterError(f"no answer: {error}") from error
    if response["error_code"] != ErrorCode.NONE:
        name = ErrorCode(response["error_code"]).name
        raise UnregisterError(f"{name}: {response['error_message'] or 'the controller gave no reason'}")


async def _controller(bootstrap_server: str, settings: NodeSettings) -> tuple[str, int]:
    host, _, port = bootstrap_server.rpartition(":")
    if not host or not port.isdigit():
        raise UnregisterError(f"{bootstrap_server} is not HOST:PORT")
    metadata = await _call(host.strip("[]"), int(port), settings, ApiKey.METADATA, {"topics": []})
    controller = metadata["controller_id"]
    for node in metadata["brokers"]:
        if node["node_id"] == controller != NO_BROKER:
            return node["host"], node["port"]
    raise UnregisterError(f"{bootstrap_server} reports no active controller; try again")


async def _call(host: str, port: int, settings: NodeSettings, key: ApiKey, body: Body) -> Body:
    node = Node(host, port, settings)
    try:
        return await node.call(key, body, timeout_ms=TIMEOUT_MS)
    finally:
        await node.close()
