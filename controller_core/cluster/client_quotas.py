"""What AlterClientQuotas may do to an entity's configuration: pure, one entity at a time.

    user, user + client-id, client-id     producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate
    ip                                    connection_creation_rate

Kafka's own words where it has any. Where it answers UNKNOWN_SERVER_ERROR without words, the code is the same and the words are
ours; unlike it we judge these also where the request is to be validated only.

Source: ZkAdminManager.alterClientQuotas, QuotaConfig, DynamicConfig. Leaves out whether an address can be resolved (shell).
"""

from collections.abc import Mapping, Sequence

from controller_core.cluster.config_values import WHOLE_BITS, ConfigType, parse, show_double
from controller_core.model.quota import DEFAULT, EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode

Config = Mapping[str, str]

CLIENT_QUOTAS: Mapping[str, ConfigType] = {
    "producer_byte_rate": ConfigType.LONG,
    "consumer_byte_rate": ConfigType.LONG,
    "request_percentage": ConfigType.DOUBLE,
    "controller_mutation_rate": ConfigType.DOUBLE,
}
"""What may be set for clients and users."""
IP_QUOTAS: Mapping[str, ConfigType] = {"connection_creation_rate": ConfigType.INT}
CREDENTIALS: Mapping[str, ConfigType] = {"SCRAM-SHA-256": ConfigType.STRING, "SCRAM-SHA-512": ConfigType.STRING}
"""What else a user's configuration may hold: by another request, never by this one."""

EPSILON = 1e-6
"""How far from a whole number a value may be where a whole number is needed: it comes as a double."""


def quotas_of(entity: QuotaEntity) -> Mapping[str, ConfigType]:
    """Tell which quotas an entity may have."""
    return CLIENT_QUOTAS if entity.ip is None else IP_QUOTAS


def read_entity(named: Sequence[tuple[str, str | None]]) -> QuotaEntity | Failure:
    """Read whom an alteration is for; of two names of one type the last counts, and no name is the default."""
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
    """Make an entity's configuration after the changes out of the present one.

    >>> alter_quotas(QuotaEntity(user="alice"), [QuotaChange("consumer_byte_rate", 1024.0)], {"request_percentage": "5.0"})
    {'request_percentage': '5.0', 'consumer_byte_rate': '1024'}
    """
    wanted = dict(config)
    for change in changes:
        if change.value is None:
            # Whatever its name: so what nobody understands can be removed.
            wanted.pop(change.key, None)
            continue
        written = _written(entity, change.key, change.value)
        if isinstance(written, Failure):
            return written
        wanted[change.key] = written
    return _unfit(entity, wanted) or wanted


def _written(entity: QuotaEntity, key: str, value: float) -> str | Failure:
    kind = quotas_of(entity).get(key)
    if kind is None:
        if entity.user is not None and key in CREDENTIALS:
            return _failed(f"{key} is no quota: credentials are altered by AlterUserScramCredentials")
        return _invalid(f"Invalid configuration key {key}")
    if kind is ConfigType.DOUBLE:
        return show_double(value)
    whole = java_whole(value + EPSILON, kind)
    if abs(float(whole) - value) > EPSILON:
        return _invalid(f"Configuration {key} must be a {kind.value} value")
    return str(whole)


def java_whole(value: float, kind: ConfigType) -> int:
    """Cast a double as Java does: towards zero, to the nearest bound beyond the bounds, and what is no number to 0.

    >>> java_whole(-2.5, ConfigType.INT), java_whole(1e300, ConfigType.INT), java_whole(float("nan"), ConfigType.LONG)
    (-2, 2147483647, 0)
    """
    limit = 1 << (WHOLE_BITS[kind] - 1)
    if value != value:  # noqa: PLR0124 - this is what tells NaN
        return 0
    if abs(value) >= limit:
        return limit - 1 if value > 0 else -limit
    return int(value)


def _unfit(entity: QuotaEntity, wanted: Config) -> Failure | None:
    """Tell why brokers could not use a configuration, also for what it held before."""
    known = quotas_of(entity)
    if entity.user is not None and entity.user is not DEFAULT and entity.client_id is None:
        known = {**known, **CREDENTIALS}
    for key, value in wanted.items():
        if key not in known:
            return _failed(f"Unknown Dynamic Configuration: {key}: remove it first")
        try:
            found = parse(known[key], value)
        except ValueError as error:
            return _failed(f"Invalid value for configuration {key}: {error}")
        if entity.ip is not None and isinstance(found, int) and found < 0:
            return _failed(f"Invalid value {found} for configuration {key}: Value must be at least 0")
    return None


def _invalid(words: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, words)


def _failed(words: str) -> Failure:
    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words)
