"""Requests of a broker to the controller of a cluster in ZooKeeper mode, which UpdateMetadata names.

Without a controller, and after a lost connection, the outcome is an error that callers retry. Source: NodeToControllerChannelManager,
DefaultAlterPartitionManager, RPCProducerIdManager and KafkaServer.controlledShutdown of Kafka 3.9.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Node, NodeSettings, RequestFailed
from kafka_wire.net.connection import BodyEncoder, body_decoder
from light_broker.control.alter_partition import alter_partition_body, check, isr_answer
from light_broker.control.port import ControlPlaneError, IsrAnswer, IsrMember, IsrProposal, ProducerIdBlock
from light_broker.core.metadata_view import NO_EPOCH, Endpoint, MetadataView

log = logging.getLogger(__name__)

ALTER_PARTITION_VERSIONS = (0, 3)
CREATE_TOPICS_VERSIONS = (2, 7)


class ControllerClient:
    """A connection to the current controller. `view` returns the metadata, `broker_epoch` the epoch of this broker."""

    def __init__(
        self,
        broker_id: int,
        listener: str,
        settings: NodeSettings,
        view: Callable[[], MetadataView],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._listener = listener
        self._settings = settings
        self._view = view
        self._broker_epoch = broker_epoch
        self._at: Endpoint | None = None
        self._node: Node | None = None

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Propose an ISR. Raises ControlPlaneError when the outcome is unknown."""

        async def body(version: int) -> Body:
            return alter_partition_body(self._broker_id, self._broker_epoch(), without_epochs, version)

        # Brokers in ZooKeeper mode do not know the epochs of each other (Partition.addBrokerEpochToIsr).
        members = tuple(IsrMember(member.broker_id, NO_EPOCH) for member in proposal.isr)
        without_epochs = replace(proposal, isr=members)

        answer = await self._call(ApiKey.ALTER_PARTITION, body, ALTER_PARTITION_VERSIONS)
        return isr_answer(answer, self._view().partition(proposal.partition))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Return a block of producer ids. Raises ControlPlaneError."""
        request = {"broker_id": self._broker_id, "broker_epoch": self._broker_epoch()}
        answer = await self._call(ApiKey.ALLOCATE_PRODUCER_IDS, request, (0, 0))
        check(answer["error_code"])
        return ProducerIdBlock(answer["producer_id_start"], answer["producer_id_len"])

    async def create_topics(self, request: Body) -> Body:
        """Create topics with the rights of this broker. Raises ControlPlaneError."""
        return await self._call(ApiKey.CREATE_TOPICS, request, CREATE_TOPICS_VERSIONS)

    async def relay(self, key: ApiKey, version: int, body: Body) -> Body:
        """Return the controller's answer to a client's request. Raises ControlPlaneError."""
        return await self._call(key, body, (version, version))

    async def shut_down(self, *, attempts: int, backoff_s: float, timeout_ms: int) -> bool:
        """Move the leaders of this broker to others; return whether the controller has done it in one of `attempts`."""
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(backoff_s)
            request = {"broker_id": self._broker_id, "broker_epoch": self._broker_epoch()}
            try:
                answer = await self._call(ApiKey.CONTROLLED_SHUTDOWN, request, (0, 3), timeout_ms=timeout_ms)
            except ControlPlaneError as failure:
                log.warning("Failed to request a controlled shutdown", extra={"error": str(failure)})
                continue
            error, remaining = ErrorCode.of(answer["error_code"]), len(answer["remaining_partitions"])
            if error is ErrorCode.NONE and not remaining:
                return True
            log.info("Controlled shutdown is not complete", extra={"error": error.name, "remaining": remaining})
        return False

    async def close(self) -> None:
        """Close the connection."""
        if self._node is not None:
            await self._node.close()

    async def _call(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        versions: VersionRange,
        *,
        timeout_ms: int | None = None,
    ) -> Body:
        node = await self._controller()
        try:
            return await node.request(key, body, body_decoder(key), versions=versions, timeout_ms=timeout_ms)
        except RequestFailed as failure:
            raise ControlPlaneError(
                ErrorCode.NETWORK_EXCEPTION, f"The controller did not answer: {failure.reason}"
            ) from failure

    async def _controller(self) -> Node:
        """Return the connection to the current controller. Raises ControlPlaneError."""
        view = self._view()
        known = view.brokers.get(view.controller_id)
        at = None if known is None else known.endpoints.get(self._listener)
        if at is None:
            message = f"The controller is unknown, or has no listener {self._listener}."
            raise ControlPlaneError(ErrorCode.NOT_CONTROLLER, message)
        if self._node is None or at != self._at:
            former, self._at, self._node = self._node, at, Node(at.host, at.port, self._settings)
            if former is not None:
                await former.close()
        return self._node
