"""Interfaces of the stores of metadata.

    loop ── commit(changes) ──► Store ── committed changes, in order ──► loop: apply, notify brokers

`Store` keeps the metadata that decisions change. The loop never applies a change by itself: the store delivers each committed change,
and only those. On the active controller that happens while `commit` or `reread` runs. On a standby, a store that replicates a log
delivers the same changes in the log's order, so that both reach the same state. A store without a log (ZooKeeper) keeps the order within
each decision; decisions that run at the same time concern different partitions (`scheduler`). Each store has its own fence against
writes of a former controller: its writes raise TermEndedError once the fence does not hold.

`AclStore`, `EntityConfigStore` and `FeatureStore` are used by the authorizer and by request handlers. They do not belong to a term: a
process that is not the active controller reads from them and, where Kafka lets every broker do so, writes to them. They return an error
as a Failure, which is sent to the client. Names are those of the model; their encoding is up to the store. The brokers' defaults are in
`active` (Defaults, TopicDefault): brokers report them, no store contains them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.model import Cluster, events, zookeeper_events
from controller_core.model.changes import Change
from controller_core.model.quota import EntityName, QuotaEntity, QuotaEntityType
from controller_core.rules.features import FeatureUpdate
from controller_core.shell.pace import Pace
from kafka_node.authorization.acl import Pattern
from kafka_node.authorization.acls import Acls, Entries
from kafka_wire import Failure


class StoreError(Exception):
    """The store can no longer be read or written: the active term ends. The cause is the store's own error."""


@dataclass(slots=True)
class Outcome:
    """Result of writing a decision's changes."""

    committed: list[Change] = field(default_factory=list)
    """In the order of the decision; a change of partition states has the written rows only."""
    stale_rows: list[int] = field(default_factory=list)
    """Rows whose write was refused or is unknown: their state must be read again."""
    stale_topics: list[str] = field(default_factory=list)
    """Topics whose record differs from what the decision assumed."""
    stale_producer_ids: bool = False
    """The last block of producer ids differs from what the decision assumed."""
    unknown: bool = False
    """The connection was lost: changes may have been written or not."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was written."""
        return not (self.stale_rows or self.stale_topics or self.stale_producer_ids or self.unknown)


@dataclass(frozen=True, slots=True)
class Reread:
    """Result of reading again what an outcome reports as stale."""

    changed: bool = False
    """Whether anything differed from the known state; it is applied already."""
    unknown_topics: tuple[zookeeper_events.StoredTopic, ...] = ()
    """Topics that were not known before: the caller decides on them."""


Deliver = Callable[[Sequence[Change]], Awaitable[None]]
"""Receives committed changes in order, applies them and returns afterwards. Raises TermEndedError when the term has ended.

A store with a log makes one call after the other; ZooKeeper's makes one for each decision, and those may overlap."""


class Store(Protocol):
    """Store of one active term, or of one standby."""

    @property
    def pace(self) -> Pace:
        """Steps of the term's long computations: those of the store and those of the loop."""

    def deliver_to(self, deliver: Deliver) -> None:
        """Set the receiver of committed changes; to be called once, before the first commit."""

    async def commit(self, cluster: Cluster, changes: Sequence[Change], event: events.Event) -> Outcome:
        """Write the changes that were decided on an event, and deliver those that are committed in the decision's order before returning.

        The event may contain what the store itself has read: from it a store knows on which stored state the changes are based. It is
        called in the step of the event loop in which the decision was made, or while no other event runs.

        Raises TermEndedError when the fence does not hold, StoreError.
        """

    async def reread(self, cluster: Cluster, outcome: Outcome) -> Reread:
        """Read again what an outcome reports as stale, and deliver what differs. Raises TermEndedError, StoreError."""


UpdateEntries = Callable[[Entries], Entries]
"""Returns a pattern's new entries, from the current ones."""
Config = Mapping[str, str]
UpdateConfig = Callable[[Config], Config | Failure]
"""Returns the new configuration from the current one, or a Failure to refuse the update."""
FeatureOutcomes = Mapping[str, Failure | None]
"""Result of an update, by feature."""


class AclCache:
    """The ACLs as last read. They are kept while the store is disconnected: old ACLs are better than none."""

    def __init__(self) -> None:
        self.acls = Acls()
        self.loaded = asyncio.Event()
        """Set once all ACLs have been read; never cleared."""


class AclStore(Protocol):
    """Changes the cluster's ACLs."""

    async def change(self, pattern: Pattern, update: UpdateEntries) -> Failure | None:
        """Replace a pattern's entries by those that `update` returns; None when they are written, or did not change."""


class EntityConfigStore(Protocol):
    """Configurations of users, client ids, client ids of users, and addresses: quotas and SCRAM credentials."""

    async def read(self, entities: Sequence[QuotaEntity]) -> dict[QuotaEntity, Config] | Failure:
        """Read configurations; an entity without a configuration gets an empty one."""

    async def read_users(self) -> dict[EntityName, Config] | Failure:
        """Read the configurations of all users that have a configuration."""

    async def names(self, entity_type: QuotaEntityType) -> list[EntityName] | Failure:
        """List the entities of a type that have a configuration."""

    async def client_ids_of(self, users: Sequence[EntityName]) -> dict[EntityName, list[EntityName]] | Failure:
        """List the client ids with a configuration that is specific to one of these users, by user."""

    async def change(self, entity: QuotaEntity, change: UpdateConfig, *, validate_only: bool = False) -> Failure | None:
        """Replace an entity's configuration by the one that `change` returns; None when it is written, or valid."""

    def may_have_config(self, entity: QuotaEntity) -> bool:
        """Return whether the store can hold a configuration under these names."""

    def stored_name(self, name: str) -> str:
        """Return a name as brokers read it from the store."""


class FeatureStore(Protocol):
    """The cluster's finalized features."""

    async def update(
        self,
        updates: Iterable[FeatureUpdate],
        *,
        controller_epoch: int,
        brokers: Iterable[int],
        validate_only: bool,
    ) -> FeatureOutcomes | Failure:
        """Update features under a controller epoch, within what these brokers support; returns the result for each feature."""
