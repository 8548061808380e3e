"""`steward controller unregister-broker`: sends UnregisterBroker to the controller of a cluster.

Kafka's kafka-cluster tool sends UnregisterBroker to any broker, but brokers in ZooKeeper mode do not support it. This command
reads the controller's address from the bootstrap server and sends the request there.
"""

import asyncio
import sys

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import NodeSettings, RequestFailed, UnsupportedVersion
from kafka_wire.net.cluster import ClusterClient, NoController, parse_bootstrap
from kafka_wire.net.connection import body_decoder
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
    key = ApiKey.UNREGISTER_BROKER
    try:
        client = ClusterClient(parse_bootstrap([bootstrap_server]), settings)
    except ValueError as error:
        raise UnregisterError(str(error)) from error
    deadline = asyncio.get_running_loop().time() + TIMEOUT_MS / 1000
    try:
        response = await client.call_controller(
            key, {"broker_id": broker}, body_decoder(key), _codes, deadline=deadline
        )
    except UnsupportedVersion as error:
        message = "the controller does not support UnregisterBroker: a Kafka broker may be the active controller"
        raise UnregisterError(message) from error
    except NoController as error:
        raise UnregisterError(f"{bootstrap_server} reports no active controller; try again") from error
    except RequestFailed as error:
        raise UnregisterError(f"no answer: {error}") from error
    finally:
        await client.close()
    if response["error_code"] != ErrorCode.NONE:
        name = ErrorCode(response["error_code"]).name
        raise UnregisterError(f"{name}: {response['error_message'] or 'the controller gave no reason'}")


def _codes(response: Body) -> list[int]:
    return [response["error_code"]]
