"""Producer ids that this broker gives to idempotent producers, from blocks of the controller. Source: Kafka's RPCProducerIdManager."""

import asyncio

from light_broker.control.port import ControlPlane, ProducerIdBlock


class ProducerIds:
    """The current block of producer ids."""

    def __init__(self, control: ControlPlane) -> None:
        self._control = control
        self._block = ProducerIdBlock(0, 0)
        self._next = 0
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        """Return an id that no producer of the cluster has. Raises ControlPlaneError when the controller gives no further block."""
        async with self._lock:
            if self._next >= self._block.first + self._block.count:
                self._block = await self._control.allocate_producer_ids()
                self._next = self._block.first
            self._next += 1
            return self._next - 1
