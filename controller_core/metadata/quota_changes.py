"""Changes of client quotas as records. Source: ClientQuotaControlManager of Kafka 4.3.1.

Which entities have which quotas is the same in both modes (`rules.client_quotas`). The values are not: here they are numbers above 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller_core.metadata.record_decision import RecordDecision
from controller_core.model.quota import EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from controller_core.rules.client_quotas import EPSILON, quotas_of
from kafka_metadata.image import MetadataImage, quota_entity
from kafka_metadata.records import ClientQuotaRecord, QuotaEntityPart
from kafka_node.configs.config_rules import WHOLE_BITS, ConfigType
from kafka_node.outcomes import Outcome
from kafka_wire import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """Requested changes of one entity."""

    entity: QuotaEntity
    changes: tuple[QuotaChange, ...]


def alter_client_quotas(
    image: MetadataImage, alterations: Iterable[QuotaAlteration], *, validate_only: bool
) -> RecordDecision:
    """Change quotas. The reply has the outcome of each entity; an invalid one does not affect the others."""
    outcomes: dict[QuotaEntity, Outcome] = {}
    records: list[ClientQuotaRecord] = []
    for alteration in alterations:
        entity = alteration.entity
        if entity in outcomes:
            outcomes[entity] = _invalid(f"Ignoring duplicate entity {_entity_text(entity)}")
            continue
        made = _records(image, alteration)
        outcomes[entity] = made if isinstance(made, Failure) else None
        records += [] if isinstance(made, Failure) else made
    return RecordDecision(() if validate_only else tuple(records), outcomes)


def _records(image: MetadataImage, alteration: QuotaAlteration) -> list[ClientQuotaRecord] | Failure:
    entity = alteration.entity
    values: dict[str, float | None] = {}
    for change in alteration.changes:
        if change.key in values:
            return _invalid(
                f"Duplicate quota key {change.key} not updating quota for this entity {_entity_text(entity)}"
            )
        values[change.key] = change.value
    parts = entity_parts(entity)
    current = image.client_quotas.get(quota_entity(parts), {})
    made = []
    for key, value in values.items():
        if value is None:
            if key in current:
                made.append(ClientQuotaRecord(parts, key, 0.0, remove=True))
            continue
        if (failure := _invalid_value(quotas_of(entity), key, value)) is not None:
            return failure
        if key not in current or current[key].value != value:
            made.append(ClientQuotaRecord(parts, key, value))
    return made


def _invalid_value(known: Mapping[str, ConfigType], key: str, value: float) -> Failure | None:
    """Return why a value is refused (ClientQuotaControlManager.validateQuotaKeyValue)."""
    kind = known.get(key)
    if kind is None:
        return _invalid(f"Invalid configuration key {key}")
    if value <= 0.0:
        return _invalid(f"Quota {key} must be greater than 0")
    if kind is ConfigType.DOUBLE:
        return None
    if value > float((1 << (WHOLE_BITS[kind] - 1)) - 1):
        article = "an" if kind is ConfigType.INT else "a"
        return _invalid(f"Proposed value for {key} is too large for {article} {kind.name}.")
    return _invalid(f"{key} cannot be a fractional value.") if value % 1.0 > EPSILON else None


def entity_parts(entity: QuotaEntity) -> tuple[QuotaEntityPart, ...]:
    """Return the parts of an entity as a record has them: the default entity has no name."""
    return tuple(
        QuotaEntityPart(entity_type, name if isinstance(name, str) else None) for entity_type, name in _named(entity)
    )


def _named(entity: QuotaEntity) -> Sequence[tuple[QuotaEntityType, EntityName]]:
    parts = (
        (QuotaEntityType.USER, entity.user),
        (QuotaEntityType.CLIENT_ID, entity.client_id),
        (QuotaEntityType.IP, entity.ip),
    )
    return [(entity_type, name) for entity_type, name in parts if name is not None]


def _entity_text(entity: QuotaEntity) -> str:
    """Return an entity as Kafka writes it (ClientQuotaEntity.toString)."""
    names = (f"{part.entity_type}={part.entity_name or 'null'}" for part in entity_parts(entity))
    return f"ClientQuotaEntity(entries={{{', '.join(names)}}})"


def _invalid(message: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, message)
