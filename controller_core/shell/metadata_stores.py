"""Interfaces of the stores of ACLs, entity configurations and features, as used by the authorizer and by request handlers.

None of them belongs to a term: a process that is not the controller reads and, where Kafka lets every broker do so, changes them too.
A store returns what goes wrong as a Failure, ready to be an answer. Names are the model's; how a store writes them is its own matter.
The brokers' defaults are in `active` (Defaults, TopicDefault): brokers report them, no store has them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from controller_core.cluster.features import FeatureUpdate
from controller_core.model.quota import EntityName, QuotaEntity, QuotaEntityType
from kafka_node.authorization.acl import Pattern
from kafka_node.authorization.acls import Acls, Entries
from kafka_node.errors import Failure

UpdateEntries = Callable[[Entries], Entries]
"""Makes a pattern's entries out of the present ones."""
Config = Mapping[str, str]
UpdateConfig = Callable[[Config], Config | Failure]
"""Makes a configuration out of the present one, or refuses to."""
FeatureOutcomes = Mapping[str, Failure | None]
"""Result of an update, by feature."""


class Known:
    """The ACLs as last read; they outlive the connection to the store, since old ACLs are better than none."""

    def __init__(self) -> None:
        self.acls = Acls()
        self.loaded = asyncio.Event()
        """Set once all have been read, and for good."""


class AclStore(Protocol):
    """Changes the cluster's ACLs."""

    async def change(self, pattern: Pattern, update: UpdateEntries) -> Failure | None:
        """Replace a pattern's entries by what `update` makes of them; None when that is written, or was so already."""


class EntityConfigStore(Protocol):
    """Configurations of users, client ids, client ids of users, and addresses: quotas and SCRAM credentials."""

    async def read(self, entities: Sequence[QuotaEntity]) -> dict[QuotaEntity, Config] | Failure:
        """Read configurations; an entity without one has an empty one."""

    async def read_users(self) -> dict[EntityName, Config] | Failure:
        """Read the configurations of all users that have one."""

    async def names(self, entity_type: QuotaEntityType) -> list[EntityName] | Failure:
        """List the entities of a type that have a configuration."""

    async def client_ids_of(self, users: Sequence[EntityName]) -> dict[EntityName, list[EntityName]] | Failure:
        """List the client ids that have a configuration for one user only, by user."""

    async def change(self, entity: QuotaEntity, change: UpdateConfig, *, validate_only: bool = False) -> Failure | None:
        """Replace an entity's configuration by what `change` makes of it; None when that is written, or would be."""

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
