"""Interface of the store that keeps the cluster's metadata, as used by the controller's loop.

    loop ── commit(changes) ──► store ── committed changes, in order ──► loop: apply, notify brokers

The loop never applies a change by itself: the store passes on each committed change, and only those. On the active controller that
happens while `commit` or `reread` runs. On a standby a store that replicates a log passes on the same changes in the log's order, so that
both reach the same state. A store without a log (ZooKeeper) keeps the order within each decision; decisions that run at the same time
concern different partitions (turns).

Leaves out who may write (each store has its own fence: its writes raise TenureLostError once it does not hold).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.model.changes import Change
from controller_core.model.cluster import Cluster
from controller_core.model.events import TopicRecord
from controller_core.shell.pace import Pace


class StoreError(Exception):
    """The store cannot be read or written any more: the active term ends. Its cause is the store's own error."""


@dataclass(slots=True)
class Outcome:
    """Result of writing a decision's changes."""

    committed: list[Change] = field(default_factory=list)
    """In the order of the decision; of partition states those rows that were written."""
    stale_rows: list[int] = field(default_factory=list)
    """Rows whose write was refused or is unknown: their state must be read again."""
    stale_topics: list[str] = field(default_factory=list)
    """Topics whose record differs from what the decision assumed."""
    stale_producer_ids: bool = False
    """The last block of producer ids is not the one it was thought to be."""
    unknown: bool = False
    """The connection was lost: what was sent may be written or not."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was written."""
        return not (self.stale_rows or self.stale_topics or self.stale_producer_ids or self.unknown)


@dataclass(frozen=True, slots=True)
class Reread:
    """Result of reading again what a write was refused for."""

    changed: bool = False
    """Whether anything differed from the known state; it is applied already."""
    strangers: tuple[TopicRecord, ...] = ()
    """Topics that were not known: to be decided on."""


Deliver = Callable[[Sequence[Change]], Awaitable[None]]
"""Receives committed changes in order, applies them and returns afterwards. Raises TenureLostError when the term has ended.

A store with a log makes one call after the other; ZooKeeper's makes one for each decision, and those may overlap."""


class Store(Protocol):
    """Store of one active term, or of one standby."""

    @property
    def pace(self) -> Pace:
        """Steps of the term's long computations: those of the store and those of the loop."""

    def deliver_to(self, deliver: Deliver) -> None:
        """Set the receiver of committed changes; to be called once, before the first commit."""

    async def commit(self, cluster: Cluster, changes: Sequence[Change]) -> Outcome:
        """Write a decision's changes, and deliver those that are committed in the decision's order before returning.

        Raises TenureLostError when the fence does not hold, StoreError.
        """

    async def reread(self, cluster: Cluster, outcome: Outcome) -> Reread:
        """Read again what an outcome reports as stale, and deliver what differs. Raises TenureLostError, StoreError."""
