"""Next delivery to a state machine that applies the quorum's log: a snapshot, committed records, or a new leader.

Source: Kafka's KafkaRaftClient.updateListenersProgress and ListenerContext.
"""

from dataclasses import dataclass

from controller_core.quorum import batches, messages, rules, states
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Replace the state by that of a snapshot."""

    id: batches.Position


@dataclass(frozen=True, slots=True)
class ApplyRecords:
    """Apply committed records: at least one whole batch."""

    read: messages.ReadRange


@dataclass(frozen=True, slots=True)
class ChangeLeader:
    """Take note of the epoch and its leader. If it is this node, all records before its epoch have been applied, and the first of it."""

    epoch: int
    leader_id: int | None


Delivery = LoadSnapshot | ApplyRecords | ChangeLeader


@dataclass(frozen=True, slots=True)
class Listening:
    """How far one state machine is."""

    next_offset: int = 0
    """Offset of the next record that it applies."""
    loaded: batches.Position | None = None
    """The snapshot that it has loaded last."""
    leader: tuple[int, int | None] = (-1, None)
    """Epoch and leader that it knows."""

    def after(self, delivery: Delivery, end_offset: int) -> "Listening":
        """Return the progress after a delivery. `end_offset` is the end of the records that were read; of others it does not matter."""
        match delivery:
            case LoadSnapshot(id=snapshot):
                return changed(self, next_offset=snapshot.offset, loaded=snapshot)
            case ApplyRecords():
                return changed(self, next_offset=end_offset)
            case ChangeLeader(epoch=epoch, leader_id=leader_id):
                return changed(self, leader=(epoch, leader_id))


def next_delivery(listening: Listening, node: Node) -> Delivery | None:
    """Return what a state machine gets next; None while there is nothing.

    A new one, and one whose next records were deleted, gets the latest snapshot first. A new leader waits until it has applied what was
    committed before its epoch.
    """
    log, next_offset = node.log, listening.next_offset
    if node.announced != listening.leader and not _must_catch_up(listening, node):
        return ChangeLeader(*node.announced)
    if next_offset >= log.high_watermark:
        return None
    latest = log.latest_snapshot
    is_behind = next_offset < log.start_offset or (next_offset == 0 and listening.loaded is None)
    if latest is not None and is_behind:
        return LoadSnapshot(latest)
    return ApplyRecords(messages.ReadRange(next_offset, log.high_watermark, rules.RESPONSE_BYTES_MAX))


def _must_catch_up(listening: Listening, node: Node) -> bool:
    return isinstance(node.state, states.Leader) and listening.next_offset <= node.state.start_offset
