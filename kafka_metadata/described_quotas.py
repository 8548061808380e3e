"""DescribeClientQuotas from an image, versions 0 and 1 (KIP-546). Pure. Source: ClientQuotasImage.describe of Kafka 4.3."""

from dataclasses import dataclass
from enum import IntEnum

from kafka_metadata.image import MetadataImage, QuotaEntity
from kafka_node.outcomes import error_fields
from kafka_wire import Body, ErrorCode, Failure

ENTITY_TYPES = ("user", "client-id", "ip")


class MatchType(IntEnum):
    """How a component of a filter selects names of its entity type."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True)
class _Filter:
    names: dict[str, str | None]
    """Names that an entity must have by type; None: the default entity."""
    types: frozenset[str]
    """Types of which it must have some name."""
    is_strict: bool

    def selects(self, entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if any(kind not in parts or parts[kind] != name for kind, name in self.names.items()):
            return False
        if not self.types <= parts.keys():
            return False
        return not self.is_strict or len(parts) == len(self.names) + len(self.types)


def describe_client_quotas(image: MetadataImage, body: Body) -> Body:
    """Answer with the quotas of the entities that a filter selects."""
    wanted = _read(body)
    if isinstance(wanted, Failure):
        return {**error_fields(wanted), "entries": None}
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in sorted(entity, key=_place)],
            "values": [{"key": key, "value": record.value} for key, record in quotas.items()],
        }
        for entity, quotas in image.client_quotas.items()
        if wanted.selects(entity)
    ]
    return {**error_fields(None), "entries": entries}


def _place(part: tuple[str, str | None]) -> str:
    return part[0]


def _read(body: Body) -> _Filter | Failure:
    names: dict[str, str | None] = {}
    types: set[str] = set()
    for component in body["components"]:
        kind, match_type, match = component["entity_type"], component["match_type"], component["match"]
        failure = _refused(kind, match_type, match, names.keys() | types)
        if failure is not None:
            return failure
        if match_type == MatchType.SPECIFIED:
            types.add(kind)
        else:
            names[kind] = match
    if "ip" in names.keys() | types and len(names) + len(types) > 1:
        return _invalid(
            "Invalid entity filter component combination, IP filter component should not be used with user or clientId "
            "filter component."
        )
    return _Filter(names, frozenset(types), body["strict"])


def _refused(kind: str, match_type: int, match: str | None, before: set[str]) -> Failure | None:
    if not kind:
        return _invalid("Invalid empty entity type.")
    if kind in before:
        return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in ENTITY_TYPES:
        return Failure(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}.")
    if match_type not in set(MatchType):
        return _invalid(f"Unknown match type {match_type}")
    name = MatchType(match_type).name
    if match_type == MatchType.EXACT and match is None:
        return _invalid(f"Request specified MATCH_TYPE_{name}, but set match string to null.")
    if match_type != MatchType.EXACT and match is not None:
        return _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
    return None


def _invalid(message: str) -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, message)
