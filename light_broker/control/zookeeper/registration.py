"""Registration of a broker in ZooKeeper: the cluster's id, and the ephemeral znode `/brokers/ids/N`.

The znode lasts as long as its session; its czxid is the broker epoch. Source: KafkaServer.startup, KafkaZkClient.registerBroker and
ensurePersistentPathExists of Kafka 3.9.
"""

import asyncio
import logging
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from kafka_node.security.settings import SecurityProtocol
from kafka_wire import ErrorCode
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import BrokerRegistration, FormatError
from kafka_zookeeper.formats import Endpoint as RegisteredEndpoint
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, Refused, RefusedReason
from light_broker.control.port import ControlPlaneError
from light_broker.core.metadata_view import BrokerView

log = logging.getLogger(__name__)

PERSISTENT_PATHS = (
    "/consumers",
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.CONFIG_CHANGES,
    paths.DELETE_TOPICS,
    "/brokers/seqid",
    paths.ISR_CHANGE_NOTIFICATION,
    paths.PRODUCER_ID_BLOCK,
    paths.LOG_DIR_EVENT_NOTIFICATION,
    *(f"{paths.CONFIG}/{kind}" for kind in ("topics", "clients", "users", "brokers", "ips")),
)
"""Znodes that each broker creates if they are missing."""

RETRY_S = 0.25
"""Pause before the registration is tried again while another session has the znode."""
CLUSTER_ID_BYTES = 16
CLUSTER_ID_ATTEMPTS = 10
"""Two brokers may create the id at the same time; the second one then reads it."""


async def ensure_paths(session: ZooKeeperSession) -> None:
    """Create the znodes that brokers and controllers expect. Raises ZooKeeperError."""
    for path in PERSISTENT_PATHS:
        await session.ensure_path(path)


async def cluster_id(session: ZooKeeperSession) -> str:
    """Return the cluster's id, which the first broker draws. Raises ZooKeeperError and ControlPlaneError."""
    await session.ensure_path("/cluster")
    for _ in range(CLUSTER_ID_ATTEMPTS):
        node = await session.get(paths.CLUSTER_ID)
        if node is not None:
            try:
                return formats.decode_cluster_id(node.data)
            except FormatError as error:
                raise ControlPlaneError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"The cluster's id is malformed: {error}"
                ) from error
        drawn = urlsafe_b64encode(secrets.token_bytes(CLUSTER_ID_BYTES)).decode().rstrip("=")
        await session.multi([Create(paths.CLUSTER_ID, formats.encode_cluster_id(drawn))])
    raise ControlPlaneError(ErrorCode.UNKNOWN_SERVER_ERROR, "The cluster's id could not be created in ZooKeeper.")


async def register(
    session: ZooKeeperSession, own: BrokerView, protocols: Mapping[str, SecurityProtocol], *, patience_s: float
) -> int:
    """Create the broker's znode, and return its epoch. Raises ZooKeeperError and ControlPlaneError.

    An earlier process with this id may have been killed: its znode ends with its session, for which this waits `patience_s`.
    """
    deadline = asyncio.get_running_loop().time() + patience_s
    path, data = paths.broker(own.id), _encoded(own, protocols)
    while True:
        ended = await session.multi([Create(path, data, ephemeral=True)])
        node = await session.get(path)
        if node is not None and node.ephemeral_owner == session.session_id:
            log.info("Registered the broker in ZooKeeper", extra={"broker": own.id, "broker_epoch": node.czxid})
            return node.czxid
        is_taken = isinstance(ended, Refused) and ended.reason is RefusedReason.NODE_EXISTS
        if isinstance(ended, Refused) and not is_taken:
            message = (
                f"ZooKeeper refused the registration at {session.chroot}{path}: {ended.reason.value} {ended.detail}"
            )
            raise ControlPlaneError(ErrorCode.UNKNOWN_SERVER_ERROR, message.strip())
        if isinstance(ended, Committed) or asyncio.get_running_loop().time() >= deadline:
            owner = "none" if node is None else f"{node.ephemeral_owner & 0xFFFFFFFFFFFFFFFF:#x}"
            message = (
                f"Another process is registered with the broker id {own.id} at {session.chroot}{path} (session {owner}). "
                "Stop that process, or set another broker.id."
            )
            raise ControlPlaneError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
        await asyncio.sleep(RETRY_S)


def _encoded(own: BrokerView, protocols: Mapping[str, SecurityProtocol]) -> bytes:
    endpoints = tuple(
        RegisteredEndpoint(listener, endpoint.host, endpoint.port, str(protocols[listener]))
        for listener, endpoint in own.endpoints.items()
    )
    registration = BrokerRegistration(own.id, endpoints, rack=own.rack, timestamp_ms=time.time_ns() // 1_000_000)
    return formats.encode_broker(registration)
