"""Rules of AlterClientQuotas and filters of DescribeClientQuotas.

Quotas by entity:

    user, user + client-id, client-id     producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate
    ip                                    connection_creation_rate

Error messages are Kafka's. Where Kafka returns UNKNOWN_SERVER_ERROR without a message, the code is the same and this module adds a
message; unlike in Kafka these errors are also returned for requests that are only validated.

Entities that a filter selects:

    part of an entity    the filter names it: a name, the default, any name    the filter does not name it
    present              as the filter specifies                               unless strict
    not present          no                                                    yes

Filters for IP addresses are separate: one for users or client ids selects no address, and one for addresses selects nothing else.

Source: ZkAdminManager.alterClientQuotas and describeClientQuotas, QuotaConfig, DynamicConfig. The shell checks whether an address can be
resolved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller_core.model.quota import DEFAULT, EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from kafka_node.configs.config_rules import WHOLE_BITS, ConfigType, java_double_string, parse, parse_double, trim
from kafka_wire import ErrorCode, Failure

Config = Mapping[str, str]

CLIENT_QUOTAS: Mapping[str, ConfigType] = {
    "producer_byte_rate": ConfigType.LONG,
    "consumer_byte_rate": ConfigType.LONG,
    "request_percentage": ConfigType.DOUBLE,
    "controller_mutation_rate": ConfigType.DOUBLE,
}
"""Quotas of users and client ids."""
IP_QUOTAS: Mapping[str, ConfigType] = {"connection_creation_rate": ConfigType.INT}
CREDENTIALS: Mapping[str, ConfigType] = {"SCRAM-SHA-256": ConfigType.STRING, "SCRAM-SHA-512": ConfigType.STRING}
"""Other keys of a user's configuration, which only AlterUserScramCredentials sets."""

EPSILON = 1e-6
"""Tolerance for whole numbers, since requests contain doubles."""


def quotas_of(entity: QuotaEntity) -> Mapping[str, ConfigType]:
    """Return the quotas that an entity may have."""
    return CLIENT_QUOTAS if entity.ip is None else IP_QUOTAS


def read_entity(named: Sequence[tuple[str, str | None]]) -> QuotaEntity | Failure:
    """Parse the entity of an alteration. Of two names of one type the last one is used; a missing name is the default."""
    if not named:
        return _invalid("Invalid empty client quota entity")
    names: dict[QuotaEntityType, EntityName] = {}
    for entity_type, name in named:
        if entity_type not in list(QuotaEntityType):
            return _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            return _invalid(f"Empty {entity_type} not supported")
        names[QuotaEntityType(entity_type)] = DEFAULT if name is None else name
    entity = QuotaEntity(
        names.get(QuotaEntityType.USER), names.get(QuotaEntityType.CLIENT_ID), names.get(QuotaEntityType.IP)
    )
    if entity.ip is not None and len(names) > 1:
        return _invalid("Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
    return entity


def alter_quotas(entity: QuotaEntity, changes: Sequence[QuotaChange], config: Config) -> Config | Failure:
    """Return an entity's configuration after the changes.

    >>> alter_quotas(QuotaEntity(user="alice"), [QuotaChange("consumer_byte_rate", 1024.0)], {"request_percentage": "5.0"})
    {'request_percentage': '5.0', 'consumer_byte_rate': '1024'}
    """
    altered = dict(config)
    for change in changes:
        if change.value is None:
            # Regardless of the key, so that unknown keys can be removed.
            altered.pop(change.key, None)
            continue
        text = _format_value(entity, change.key, change.value)
        if isinstance(text, Failure):
            return text
        altered[change.key] = text
    return _config_error(entity, altered) or altered


def _format_value(entity: QuotaEntity, key: str, value: float) -> str | Failure:
    kind = quotas_of(entity).get(key)
    if kind is None:
        if entity.user is not None and key in CREDENTIALS:
            return _failed(f"{key} is no quota: credentials are altered by AlterUserScramCredentials")
        return _invalid(f"Invalid configuration key {key}")
    if kind is ConfigType.DOUBLE:
        return java_double_string(value)
    whole = java_whole(value + EPSILON, kind)
    if abs(float(whole) - value) > EPSILON:
        return _invalid(f"Configuration {key} must be a {kind.value} value")
    return str(whole)


def java_whole(value: float, kind: ConfigType) -> int:
    """Cast a double as Java does: towards zero, to the nearest bound if it is out of range, and NaN to 0.

    >>> java_whole(-2.5, ConfigType.INT), java_whole(1e300, ConfigType.INT), java_whole(float("nan"), ConfigType.LONG)
    (-2, 2147483647, 0)
    """
    limit = 1 << (WHOLE_BITS[kind] - 1)
    if value != value:  # noqa: PLR0124 - true only for NaN
        return 0
    if abs(value) >= limit:
        return limit - 1 if value > 0 else -limit
    return int(value)


def _config_error(entity: QuotaEntity, config: Config) -> Failure | None:
    """Return why brokers cannot use a configuration, including keys that it had before."""
    known = quotas_of(entity)
    if entity.user is not None and entity.user is not DEFAULT and entity.client_id is None:
        known = {**known, **CREDENTIALS}
    for key, value in config.items():
        if key not in known:
            return _failed(f"Unknown Dynamic Configuration: {key}: remove it first")
        try:
            found = parse(known[key], value)
        except ValueError as error:
            return _failed(f"Invalid value for configuration {key}: {error}")
        if entity.ip is not None and isinstance(found, int) and found < 0:
            return _failed(f"Invalid value {found} for configuration {key}: Value must be at least 0")
    return None


def _invalid(message: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, message)


def _failed(message: str) -> Failure:
    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)


EXACT, OF_DEFAULT, SPECIFIED = 0, 1, 2
"""Match types of a filter component: a name, the default entity, any name."""

_NAMES_IN_ERRORS = {QuotaEntityType.USER: "user", QuotaEntityType.CLIENT_ID: "client", QuotaEntityType.IP: "ip"}


@dataclass(frozen=True, slots=True)
class NameMatch:
    """Condition on one part of an entity."""

    name: EntityName | None
    """None: any name, but not a missing one."""

    def fits(self, name: EntityName | None) -> bool:
        """Whether a part of an entity matches."""
        return name is not None if self.name is None else name == self.name


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Filter of entities. None: the filter does not name that part."""

    user: NameMatch | None = None
    client_id: NameMatch | None = None
    ip: NameMatch | None = None
    strict: bool = False

    def selects(self, entity: QuotaEntity) -> bool:
        """Whether the filter selects an entity.

        >>> alice = QuotaFilter(user=NameMatch("alice"))
        >>> alice.selects(QuotaEntity(user="alice", client_id="c")), alice.selects(QuotaEntity(client_id="c"))
        (True, False)
        """
        if entity.ip is not None:
            return self.wants_ips and self._fits(self.ip, entity.ip)
        if not self.wants_clients:
            return False
        return self._fits(self.user, entity.user) and self._fits(self.client_id, entity.client_id)

    def _fits(self, match: NameMatch | None, name: EntityName | None) -> bool:
        return name is None or not self.strict if match is None else match.fits(name)

    @property
    def wants_clients(self) -> bool:
        """Whether the filter can select users or client ids."""
        return self.ip is None

    @property
    def wants_ips(self) -> bool:
        """Whether the filter can select IP addresses."""
        return self.user is None and self.client_id is None and (self.ip is not None or not self.strict)

    @property
    def wants_users(self) -> bool:
        """Whether the filter can select entities with a user."""
        return self.wants_clients and (self.user is not None or not self.strict)

    @property
    def wants_client_ids(self) -> bool:
        """Whether the filter can select entities with a client id."""
        return self.wants_clients and (self.client_id is not None or not self.strict)


def read_filter(components: Sequence[tuple[str, int, str | None]], *, strict: bool) -> QuotaFilter | Failure:
    """Parse a filter from the type, match type and name of each component."""
    matches: dict[QuotaEntityType, NameMatch] = {}
    for entity_type, kind, name in components:
        if entity_type not in list(QuotaEntityType):
            return _not_known(entity_type)
        known = QuotaEntityType(entity_type)
        if known in matches:
            return _invalid_filter(f"Duplicate {_NAMES_IN_ERRORS[known]} filter component entity type")
        match = _match(kind, name)
        if match is None:
            return _invalid_filter(f"Unexpected match type {kind} of the {entity_type}, or no name to match exactly")
        matches[known] = match
    found = QuotaFilter(
        matches.get(QuotaEntityType.USER),
        matches.get(QuotaEntityType.CLIENT_ID),
        matches.get(QuotaEntityType.IP),
        strict,
    )
    if found.ip is not None and len(matches) > 1:
        return _invalid_filter(
            "Invalid entity filter component combination, IP filter component should not be used with "
            "user or clientId filter component."
        )
    return found


def _match(kind: int, name: str | None) -> NameMatch | None:
    if kind == EXACT:
        return None if name is None else NameMatch(name)
    return {OF_DEFAULT: NameMatch(DEFAULT), SPECIFIED: NameMatch(None)}.get(kind)


def quota_values(entity: QuotaEntity, config: Config) -> Mapping[str, float] | Failure:
    """Parse the quotas in an entity's configuration; other keys are ignored."""
    values = {}
    for key, text in config.items():
        if key in quotas_of(entity):
            try:
                values[key] = parse_double(trim(text))
            except ValueError:
                message = f"Unexpected client quota configuration value: {key} -> {text} of {entity}"
                return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    return values


def _not_known(entity_type: str) -> Failure:
    if not entity_type:
        return _invalid_filter("Unexpected empty filter component entity type")
    return Failure(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{entity_type}' not supported")


def _invalid_filter(message: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, message)
