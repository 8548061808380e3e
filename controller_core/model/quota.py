"""Client quotas: entities and requested changes (KIP-546, KIP-612), and the mutation allowance of one request (KIP-599)."""

from dataclasses import dataclass
from enum import Enum, StrEnum


class QuotaEntityType(StrEnum):
    """Type of a quota entity, by its name in requests."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class DefaultName(Enum):
    """The type of DEFAULT."""

    DEFAULT = "<default>"


DEFAULT = DefaultName.DEFAULT
"""Default entity, in place of a name: it applies to all entities of the type that have no quota. It is no string, so it cannot collide
with a user name."""

EntityName = str | DefaultName


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Entity that a quota is for: a user, a client id, a client id of a user, or an IP address. None: the entity does not have that part."""

    user: EntityName | None = None
    client_id: EntityName | None = None
    ip: EntityName | None = None


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One quota to set or, with None, to remove."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class MutationAllowance:
    """Tokens in the bucket when a request is decided; one token is one partition that is created or deleted."""

    tokens: float
    """Below 0: the quota is used up."""
    is_strict: bool
    """Whether mutations are refused while the quota is used up; otherwise they are only counted."""
