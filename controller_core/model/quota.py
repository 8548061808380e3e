"""Client quotas as values: whom one is for, and what an alteration asks for (KIP-546, KIP-599, KIP-612).

Leaves out where they are kept and what brokers do by them.
"""

# MERGED controller_core.model.quota: """The part of a controller mutation quota that one request may use (KIP-599)."""
from dataclasses import dataclass
from enum import Enum, StrEnum


class QuotaEntityType(StrEnum):
    """What a quota may be for, by its name in requests."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class DefaultName(Enum):
    """The type of DEFAULT."""

    DEFAULT = "<default>"


DEFAULT = DefaultName.DEFAULT
"""In place of a name: all of the type that have no quota of their own. No user can be named so: it is no string."""

EntityName = str | DefaultName


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom a quota is for: a user, a client id, a client id of a user, or an address. None: that part is not named."""

    user: EntityName | None = None
    client_id: EntityName | None = None
    ip: EntityName | None = None


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One quota set or, by None, removed."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class MutationAllowance:
    """Tokens of a bucket when a request is decided; one token is one partition that is created or deleted."""

    tokens: float
    """Below 0: the quota is used up."""
    is_strict: bool
    """Whether mutations are refused while the quota is used up; if not, they are only counted."""
