"""Proposals of ISRs to the controller (AlterPartition), repeated until they are answered. Source: Kafka's AlterPartitionManager."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlane, ControlPlaneError, IsrMember, IsrProposal
from light_broker.core.isr import AfterAnswer, AlterPartitionAnswer, Pending
from light_broker.core.partition import Leader, answered
from light_broker.shell.replicas.hosted_partition import HostedPartition

log = logging.getLogger(__name__)

RETRY_S = 0.05
"""Pause before the same proposal is sent again (AlterPartitionManager)."""
NO_BROKER_EPOCH = -1


class IsrProposals:
    """Proposals in flight, at most one for each partition: a pending ISR is not changed again before its answer."""

    def __init__(
        self,
        control: ControlPlane,
        broker_epochs: Callable[[], Mapping[int, int]],
        on_answer: Callable[[TopicPartition], None],
    ) -> None:
        """`on_answer` is called after an answer has changed a partition."""
        self._control = control
        self._broker_epochs = broker_epochs
        self._on_answer = on_answer
        self._tasks: set[asyncio.Task[None]] = set()

    def propose(self, hosted: HostedPartition, pending: Pending) -> None:
        """Send a change of the ISR, and apply the response."""
        task = asyncio.get_running_loop().create_task(self._propose(hosted, pending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _propose(self, hosted: HostedPartition, pending: Pending) -> None:
        while (leader := hosted.leader) is not None and leader.isr == pending:
            answer = await self._send(hosted, leader, pending)
            leader = hosted.leader
            if leader is None:
                return
            hosted.role, outcome = answered(leader, pending, answer)
            if outcome is not AfterAnswer.RETRY:
                extra = {"partition": str(hosted.name), "reason": outcome.value}
                log.info("Controller answered a change of the ISR", extra=extra)
                self._on_answer(hosted.name)
                return
            await asyncio.sleep(RETRY_S)

    async def _send(self, hosted: HostedPartition, leader: Leader, pending: Pending) -> AlterPartitionAnswer:
        epochs = self._broker_epochs()
        proposal = IsrProposal(
            hosted.topic_id,
            hosted.name,
            tuple(IsrMember(member, epochs.get(member, NO_BROKER_EPOCH)) for member in pending.proposed),
            leader.leader_epoch,
            leader.partition_epoch,
        )
        try:
            answer = await self._control.alter_partition(proposal)
        except ControlPlaneError:
            # The outcome is unknown: the same proposal is sent again.
            return AlterPartitionAnswer(ErrorCode.REQUEST_TIMED_OUT)
        if answer.state is None:
            return AlterPartitionAnswer(answer.error)
        state = answer.state
        return AlterPartitionAnswer(answer.error, state.leader_epoch, state.partition_epoch, state.isr)

    async def close(self) -> None:
        """Cancel the proposals in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
