"""The controllers of a cluster as a broker reaches them: which one leads, and requests to it.

The fetches of the metadata log find the leader (`observer`); other requests wait until it is known, and are sent again after a lost
connection and after NOT_CONTROLLER. Source: NodeToControllerChannelManager of Kafka.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from kafka_node.security.endpoints import Address
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.codec import CodecError
from kafka_wire.net.client import Backoff, Node, NodeSettings, RequestFailed, UnsupportedVersion
from kafka_wire.net.connection import BodyEncoder, body_decoder
from light_broker.control.port import ControlPlaneError

log = logging.getLogger(__name__)

BACKOFF = Backoff(initial_ms=50, cap_ms=500)
"""Kafka's quorum clients wait 50 to 500 ms between attempts to connect (RaftManager)."""
RETRY_S = 0.1
"""Pause before a request is sent again."""
MAX_ADDRESSES = 100
"""Addresses with a connection; the one that was added first is closed for a new one. No quorum has as many nodes."""
ASK_AGAIN = {ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Errors of a controller that does not lead, or does not answer yet."""


class Controllers:
    """Connections to controllers, and the current leader."""

    def __init__(self, voters: Mapping[int, Address], servers: tuple[Address, ...], settings: NodeSettings) -> None:
        """Connect to none yet. `voters` are the static ones by id, `servers` those to ask while no leader is known."""
        self.epoch = 0
        """Highest epoch that a controller has named."""
        self._voters = voters
        self._servers = servers
        self._settings = replace(settings, backoff=BACKOFF)
        self._leader: Address | None = None
        self._found = asyncio.Event()
        self._turn = 0
        self._nodes: dict[Address, Node] = {}

    @property
    def leader(self) -> Address | None:
        """Address of the leader, where it is known."""
        return self._leader

    def next_address(self) -> Address:
        """Return the address of the leader, or of the next controller to ask."""
        if self._leader is not None:
            return self._leader
        self._turn += 1
        return self._servers[self._turn % len(self._servers)]

    def learn(self, epoch: int, leader_id: int, address: Address | None) -> None:
        """Take note of an epoch and its leader, whose address may be that of a static voter."""
        if epoch < self.epoch:
            return
        found = address or self._voters.get(leader_id)
        if epoch > self.epoch or found is not None:
            self.epoch = epoch
            self._set_leader(found)

    def answered(self, address: Address) -> None:
        """Take note that a controller has answered as the leader."""
        self._set_leader(address)

    def lost(self, address: Address) -> None:
        """Take note that a controller does not lead, or cannot be reached."""
        if self._leader == address:
            self._set_leader(None)

    def _set_leader(self, address: Address | None) -> None:
        if address != self._leader:
            log.info("Leader of the controllers changed", extra={"leader": str(address), "epoch": self.epoch})
        self._leader = address
        if address is None:
            self._found.clear()
        else:
            self._found.set()

    def node(self, address: Address) -> Node:
        """Return the connection to a controller."""
        if address not in self._nodes:
            if len(self._nodes) >= MAX_ADDRESSES:
                del self._nodes[next(iter(self._nodes))]  # Its connection ends with the last reference to it.
            self._nodes[address] = Node(address.host, address.port, self._settings)
        return self._nodes[address]

    async def call(self, key: ApiKey, body: Body | BodyEncoder, versions: VersionRange, *, timeout_ms: int) -> Body:
        """Return the leader's response. Raises ControlPlaneError when there is none in time.

        The request may have been carried out more than once: a response may have been lost.
        """
        loop = asyncio.get_running_loop()
        deadline, reason = loop.time() + timeout_ms / 1000, "no controller leads the quorum"
        while (left_s := deadline - loop.time()) > 0:
            leader = self._leader
            if leader is None:
                await self._until_found(left_s)
                continue
            try:
                answer = await self.node(leader).request(
                    key, body, body_decoder(key), versions=versions, timeout_ms=max(1, int(left_s * 1000))
                )
            except UnsupportedVersion as failure:
                raise ControlPlaneError(ErrorCode.UNSUPPORTED_VERSION, failure.reason) from failure
            except (RequestFailed, CodecError) as failure:
                reason = str(failure)
            else:
                if (code := answer.get("error_code", ErrorCode.NONE)) not in ASK_AGAIN:
                    return answer
                reason = f"{leader} answered {ErrorCode.of(code).name}"
            self.lost(leader)
            await asyncio.sleep(RETRY_S)
        message = f"The controllers did not answer {key.name} in {timeout_ms} ms: {reason}"
        raise ControlPlaneError(ErrorCode.REQUEST_TIMED_OUT, message)

    async def _until_found(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self._found.wait(), timeout_s)
        except TimeoutError:
            return

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(node.close() for node in self._nodes.values()))
