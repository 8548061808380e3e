"""Which entities DescribeClientQuotas is asked about, and what it tells of each: pure.

    part of an entity    filter names it: this name, the default, any name    filter does not name it
    named                by the filter                                        unless strict
    not named            no                                                   yes

An address has a filter of its own: one that asks for users or client ids means no address, and one for addresses nothing else.

Source: ZkAdminManager.describeClientQuotas. Leaves out reading: what is not asked for need not be read (shell).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller_core.cluster.client_quotas import Config, quotas_of
from controller_core.cluster.config_values import parse_double, trim
from controller_core.model.quota import DEFAULT, EntityName, QuotaEntity, QuotaEntityType
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode

EXACT, OF_DEFAULT, SPECIFIED = 0, 1, 2
"""How a component of a filter matches: this name, the default entity, any name."""

_WORDS = {QuotaEntityType.USER: "user", QuotaEntityType.CLIENT_ID: "client", QuotaEntityType.IP: "ip"}


@dataclass(frozen=True, slots=True)
class Match:
    """What one part of an entity must be."""

    name: EntityName | None
    """None: any name, as long as there is one."""

    def fits(self, name: EntityName | None) -> bool:
        """Judge a part of an entity."""
        return name is not None if self.name is None else name == self.name


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Which entities are asked for. None: the filter does not name that part."""

    user: Match | None = None
    client_id: Match | None = None
    ip: Match | None = None
    strict: bool = False

    def selects(self, entity: QuotaEntity) -> bool:
        """Judge an entity.

        >>> alice = QuotaFilter(user=Match("alice"))
        >>> alice.selects(QuotaEntity(user="alice", client_id="c")), alice.selects(QuotaEntity(client_id="c"))
        (True, False)
        """
        if entity.ip is not None:
            return self.wants_ips and self._fits(self.ip, entity.ip)
        if not self.wants_clients:
            return False
        return self._fits(self.user, entity.user) and self._fits(self.client_id, entity.client_id)

    def _fits(self, match: Match | None, name: EntityName | None) -> bool:
        return name is None or not self.strict if match is None else match.fits(name)

    @property
    def wants_clients(self) -> bool:
        """Whether any user or client id is asked for."""
        return self.ip is None

    @property
    def wants_ips(self) -> bool:
        """Whether any address is asked for."""
        return self.user is None and self.client_id is None and (self.ip is not None or not self.strict)

    @property
    def wants_users(self) -> bool:
        """Whether entities with a user are asked for."""
        return self.wants_clients and (self.user is not None or not self.strict)

    @property
    def wants_client_ids(self) -> bool:
        """Whether entities with a client id are asked for."""
        return self.wants_clients and (self.client_id is not None or not self.strict)


def read_filter(components: Sequence[tuple[str, int, str | None]], *, strict: bool) -> QuotaFilter | Failure:
    """Read a filter: type, kind of match and name of each component."""
    matches: dict[QuotaEntityType, Match] = {}
    for entity_type, kind, name in components:
        if entity_type not in list(QuotaEntityType):
            return _not_known(entity_type)
        known = QuotaEntityType(entity_type)
        if known in matches:
            return _invalid(f"Duplicate {_WORDS[known]} filter component entity type")
        match = _match(kind, name)
        if match is None:
            return _invalid(f"Unexpected match type {kind} of the {entity_type}, or no name to match exactly")
        matches[known] = match
    found = QuotaFilter(
        matches.get(QuotaEntityType.USER),
        matches.get(QuotaEntityType.CLIENT_ID),
        matches.get(QuotaEntityType.IP),
        strict,
    )
    if found.ip is not None and len(matches) > 1:
        return _invalid(
            "Invalid entity filter component combination, IP filter component should not be used with "
            "user or clientId filter component."
        )
    return found


def _match(kind: int, name: str | None) -> Match | None:
    if kind == EXACT:
        return None if name is None else Match(name)
    return {OF_DEFAULT: Match(DEFAULT), SPECIFIED: Match(None)}.get(kind)


def quota_values(entity: QuotaEntity, config: Config) -> Mapping[str, float] | Failure:
    """Read the quotas in an entity's configuration; what else it holds is no quota. None at all: it has no quotas."""
    values = {}
    for key, text in config.items():
        if key in quotas_of(entity):
            try:
                values[key] = parse_double(trim(text))
            except ValueError:
                words = f"Unexpected client quota configuration value: {key} -> {text} of {entity}"
                return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words)
    return values


def _not_known(entity_type: str) -> Failure:
    if not entity_type:
        return _invalid("Unexpected empty filter component entity type")
    return Failure(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{entity_type}' not supported")


def _invalid(words: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, words)
