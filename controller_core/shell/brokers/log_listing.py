"""Request for the list of a broker's logs (DescribeLogDirs), decoded into columns."""

import asyncio

from controller_core.model import Endpoint
from controller_core.zookeeper_mode.apis import CALLED
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import CodecError
from kafka_wire.log_dir_columns import LogDirColumns, decode_log_dirs
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.negotiation import api_versions_request, choose_version
from kafka_wire.net.node import Node, NodeSettings

TIMEOUT_MS = 30_000
"""A broker sums the sizes of all of its segments. One that takes longer is asked again later."""
CLIENT_ID = "steward-controller-logs"


class ListingError(Exception):
    """The broker did not return the list of its logs."""


async def list_logs(broker: int, endpoint: Endpoint, security: BrokerSecurity = UNPROTECTED) -> LogDirColumns:
    """Request the list of all logs of one broker. Raises ListingError."""
    settings = security.settings(NodeSettings(client_id=CLIENT_ID), endpoint.security_protocol)
    node = Node(endpoint.host, endpoint.port, settings)
    key = ApiKey.DESCRIBE_LOG_DIRS
    try:
        answer = await node.call(ApiKey.API_VERSIONS, api_versions_request(), timeout_ms=TIMEOUT_MS)
        offered = {one["api_key"]: (one["min_version"], one["max_version"]) for one in answer["api_keys"]}
        version = choose_version(key, (CALLED[key].lowest, CALLED[key].highest), offered, f"broker {broker}")
        frame = codec.encode_request(key, version, 0, CLIENT_ID, {"topics": None})
        # A long answer is decoded in a thread: the event loop processes events in the meantime.
        found = await asyncio.to_thread(decode_log_dirs, version, await node.call_raw(frame, timeout_ms=TIMEOUT_MS))
    except (ConnectionFailed, CodecError, UnsupportedVersion) as error:
        raise ListingError(f"broker {broker}: {error}") from error
    finally:
        await node.close()
    if found.error_code != ErrorCode.NONE:
        raise ListingError(f"broker {broker}: {ErrorCode(found.error_code).name}")
    return found
