"""Controller of one simulated partition: it elects leaders and decides on ISRs, as Kafka's KRaft controller does (KIP-497, 841, 903, 966)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kafka_wire import ErrorCode
from light_broker.core.isr import AlterPartitionAnswer
from light_broker.core.metadata_view import NO_LEADER, PartitionView


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a broker learns from the controller. Later versions replace earlier ones."""

    version: int
    state: PartitionView
    live: dict[int, int]
    """Broker epochs of the brokers that are not fenced."""


class Controller:
    """Never fails. Replicas outside the ISR that have every committed record (ELR) may be elected when the ISR has no live member."""

    def __init__(
        self,
        replicas: tuple[int, ...],
        min_isr: int,
        publish: Callable[[Metadata], None],
        choose: Callable[[list[int]], int],
    ) -> None:
        """`choose` selects a leader of several eligible ones: each of them must be right."""
        self.state = PartitionView(replicas, replicas, replicas[0], leader_epoch=0, partition_epoch=0)
        self.live: dict[int, int] = {}
        self._min_isr = min_isr
        self._publish = publish
        self._choose = choose
        self.version = 0
        self._next_epoch = 1

    def register(self, broker_id: int, *, is_empty: bool) -> int:
        """Register a broker that has started, with an empty log if its disk was lost; return its broker epoch."""
        self.fence(broker_id)
        if is_empty:
            without = [
                tuple(broker for broker in ids if broker != broker_id) for ids in (self.state.isr, self.state.elr)
            ]
            self.state = replace(self.state, isr=without[0], elr=without[1])
        self.live[broker_id] = self._next_epoch
        self._next_epoch += 1
        self._elect()
        self.publish()
        return self.live[broker_id]

    def fence(self, broker_id: int) -> None:
        """Take a broker out of the ISR and of leadership."""
        if self.live.pop(broker_id, None) is None:
            return
        self._set_isr(tuple(member for member in self.state.isr if member != broker_id))
        self._elect()
        self.publish()

    def alter_partition(
        self, leader_id: int, leader_epoch: int, partition_epoch: int, members: tuple[tuple[int, int], ...]
    ) -> AlterPartitionAnswer:
        """Change the ISR as its leader asks for."""
        state = self.state
        if leader_id != state.leader or leader_epoch != state.leader_epoch:
            return AlterPartitionAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if partition_epoch != state.partition_epoch:
            return AlterPartitionAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        if any(self.live.get(member) != epoch for member, epoch in members):
            return AlterPartitionAnswer(ErrorCode.INELIGIBLE_REPLICA)
        self._set_isr(tuple(member for member, _ in members))
        self.publish()
        return AlterPartitionAnswer(ErrorCode.NONE, self.state.leader_epoch, self.state.partition_epoch, self.state.isr)

    def publish(self) -> None:
        """Send the current state to all brokers."""
        self.version += 1
        self._publish(Metadata(self.version, self.state, dict(self.live)))

    def _set_isr(self, isr: tuple[int, ...]) -> None:
        removed = tuple(member for member in self.state.isr if member not in isr)
        elr = () if len(isr) >= self._min_isr else (*self.state.elr, *removed)
        elr = tuple(dict.fromkeys(member for member in elr if member not in isr))
        self.state = replace(self.state, isr=isr, elr=elr, partition_epoch=self.state.partition_epoch + 1)

    def _elect(self) -> None:
        state = self.state
        if state.leader in self.live and state.leader in state.isr:
            return
        in_sync = [broker for broker in state.isr if broker in self.live]
        eligible = [broker for broker in state.elr if broker in self.live]
        leader = self._choose(in_sync or eligible or [NO_LEADER])
        isr = state.isr
        if leader != NO_LEADER and not in_sync:
            isr = (leader,)
        if leader == state.leader == NO_LEADER:
            return
        self.state = replace(
            state,
            leader=leader,
            isr=isr,
            elr=tuple(broker for broker in state.elr if broker not in isr),
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
