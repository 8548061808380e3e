"""State machines that apply the quorum's log."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.quorum.listening import (
    ApplyRecords,
    ChangeLeader,
    Delivery,
    Listening,
    LoadSnapshot,
    next_delivery,
)
from controller_core.quorum.node import Node
from controller_core.shell.quorum.storage import Storage
from controller_core.shell.quorum.wire_batches import MAX_EPOCH
from kafka_log.files.snapshots import SnapshotReader
from kafka_log.format.batches import appendable_bytes, control_batches


class Listener(Protocol):
    """A state machine. Its methods are called on the event loop, one at a time; an exception ends the node."""

    @property
    def is_busy(self) -> bool:
        """Whether it still applies what it got: it gets nothing more, and calls `Listeners.update` once it is done."""

    def handle_snapshot(self, snapshot: SnapshotReader) -> None:
        """Replace the state by that of a snapshot, which is closed afterwards."""

    def handle_commit(self, batches: bytes) -> None:
        """Apply whole batches of committed records, control records included, in the order of the log."""

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """Take note of the leader of an epoch; None while there is none."""


@dataclass(slots=True, eq=False)
class _Context:
    listener: Listener
    listening: Listening = field(default_factory=Listening)
    is_scheduled: bool = False


class Listeners:
    """The listeners of one node. `current` returns the node, `fail` ends it."""

    def __init__(self, storage: Storage, current: Callable[[], Node | None], fail: Callable[[Exception], None]) -> None:
        self._storage = storage
        self._current = current
        self._fail = fail
        self._contexts: list[_Context] = []

    def register(self, listener: Listener) -> None:
        """Deliver everything from the beginning of the log on to a listener."""
        context = _Context(listener)
        self._contexts.append(context)
        self._schedule(context)

    def unregister(self, listener: Listener) -> None:
        """Deliver nothing more to a listener; it may register again, and gets everything again."""
        self._contexts = [context for context in self._contexts if context.listener is not listener]

    def update(self) -> None:
        """Deliver what the node has new."""
        for context in self._contexts:
            self._schedule(context)

    def _schedule(self, context: _Context) -> None:
        if not context.is_scheduled:
            context.is_scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver, context)

    def _deliver(self, context: _Context) -> None:
        """Deliver one thing, and the next one later: a listener that is far behind does not block the event loop."""
        context.is_scheduled = False
        node = self._current()
        if node is None or context not in self._contexts or context.listener.is_busy:
            return
        delivery = next_delivery(context.listening, node)
        if delivery is None:
            return
        try:
            end_offset = self._hand_over(context.listener, delivery)
        except Exception as error:  # noqa: BLE001 - the listener's state is unknown then, whatever it is
            self._fail(error)
            return
        context.listening = context.listening.after(delivery, end_offset)
        self._schedule(context)

    def _hand_over(self, listener: Listener, delivery: Delivery) -> int:
        """Call the listener; return the end of the records that it got, 0 without any."""
        match delivery:
            case LoadSnapshot(id=snapshot):
                with self._storage.open_snapshot(snapshot) as reader:
                    listener.handle_snapshot(reader)
            case ApplyRecords(read=wanted):
                read = self._storage.read(wanted)
                batches = read[: appendable_bytes(read, MAX_EPOCH)]
                _, end_offset = control_batches(batches)
                assert end_offset is not None, "a read has at least one whole batch"
                listener.handle_commit(batches)
                return end_offset
            case ChangeLeader(epoch=epoch, leader_id=leader_id):
                listener.handle_leader_change(epoch, leader_id)
        return 0
