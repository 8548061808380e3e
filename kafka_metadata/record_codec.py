"""Metadata records to the bytes of the log's records, and back.

    frame version uvarint (1) | API key uvarint | record version uvarint | record

Nothing is skipped: a record of an unknown type or a newer version, and a tagged field that cannot be kept, are refused with the offset,
because a node that leaves them out would decide by another state than the other nodes. Source: AbstractApiMessageSerde and
MetadataRecordSerde of Kafka.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_versions import record_version, version_name
from kafka_metadata.records import (
    RECORD_CLASSES,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    EndPoint,
    MetadataRecord,
    PartitionChangeRecord,
    QuotaEntityPart,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SupportedFeature,
)
from kafka_wire import Body, schema, unknown_tags
from kafka_wire.failures import CodecError
from kafka_wire.records import METADATA_FRAME_VERSION
from kafka_wire.schema import LATEST
from kafka_wire.varints import read_uvarint, write_uvarint

_STRUCTS: Mapping[tuple[type[MetadataRecord], str], type] = MappingProxyType(
    {
        (RegisterBrokerRecord, "end_points"): EndPoint,
        (RegisterBrokerRecord, "features"): SupportedFeature,
        (RegisterControllerRecord, "end_points"): EndPoint,
        (RegisterControllerRecord, "features"): SupportedFeature,
        (ClientQuotaRecord, "entity"): QuotaEntityPart,
    }
)
"""Types of the elements of arrays that are structs."""

_CHANGES = frozenset({BrokerRegistrationChangeRecord, PartitionChangeRecord})
"""Records whose fields are merged into an entry. An unknown field of them would be lost, so it is refused."""


def record_frame(name: str, version: int, body: Mapping[str, Any], tags: unknown_tags.UnknownTags = ()) -> bytes:
    """Return the value of a metadata record in the log. Raises CodecError."""
    key = schema.definition(name, version).api_key
    assert key is not None, "metadata records have API keys"
    head = b"".join(map(write_uvarint, (METADATA_FRAME_VERSION, key, version)))
    return head + unknown_tags.encode(name, version, body, tags)


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """Return the value of a record, in the version of a metadata version.

    Raises MetadataError if the metadata version does not have the record, or lacks one of its fields.
    """
    name = type(record).__name__
    version = record_version(name, metadata_version)
    if version is None:
        raise MetadataError(
            f"{name} cannot be written: metadata.version {version_name(metadata_version)} does not have it."
        )
    if isinstance(record, BrokerRegistrationChangeRecord):
        version = min(version, _change_version(record))
    kind = _kinds_by_class()[type(record)]
    try:
        return record_frame(name, version, kind.to_body(record), record.unknown_tags)
    except CodecError as error:
        at_version = version_name(metadata_version)
        raise MetadataError(f"{name} cannot be written at metadata.version {at_version}: {error}.") from error


def _change_version(record: BrokerRegistrationChangeRecord) -> int:
    """Return the version that Kafka writes: the first that has the fields in use."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


def decode_record(value: bytes | None, offset: int) -> MetadataRecord:
    """Return the record in the value of a log's record. Raises MetadataError, which names the offset."""
    try:
        return _decode(value or b"")
    except (CodecError, IndexError) as error:
        reason = str(error) if isinstance(error, CodecError) else "it is cut short"
        raise MetadataError(f"The metadata record at offset {offset} cannot be read: {reason}.") from error


def _decode(value: bytes) -> MetadataRecord:
    frame_version, position = read_uvarint(value, 0)
    if frame_version != METADATA_FRAME_VERSION:
        raise CodecError(f"its frame version is {frame_version}, only {METADATA_FRAME_VERSION} is known")
    key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    kind = _kinds_by_key().get(key)
    if kind is None:
        highest = max(_kinds_by_key())
        raise CodecError(f"type {key} is unknown (the types 0 to {highest} are known); run a newer version of Steward")
    if version not in kind.versions:
        raise CodecError(
            f"version {version} of type {key} ({kind.name}) is unknown (the versions {kind.versions.lowest} to "
            f"{kind.versions.highest} are known); run a newer version of Steward"
        )
    body, tags = unknown_tags.decode(kind.name, version, value, position)
    for number, _ in tags:
        kind.check_unknown_tag(number, version)
    return kind.from_body(body, tags)


class _Kind(NamedTuple):
    """One type of records: how its values are converted."""

    record_class: type[MetadataRecord]
    versions: schema.Versions
    tags: Mapping[int, str]
    """Names of the tagged fields of all versions by number."""
    readers: tuple[tuple[str, Callable[[Any], Any] | None], ...]
    """Keys of the body, with the conversion of those that are arrays."""

    @property
    def name(self) -> str:
        """Kafka's name."""
        return self.record_class.__name__

    def from_body(self, body: Body, tags: unknown_tags.UnknownTags) -> MetadataRecord:
        """Convert a body of the codec."""
        values = {key: body[key] if read is None else read(body[key]) for key, read in self.readers}
        return self.record_class(**values, unknown_tags=tags)

    def to_body(self, record: MetadataRecord) -> Body:
        """Convert to a body of the codec."""
        body = {}
        for key, read in self.readers:
            value = getattr(record, key)
            if read is not None and value and (self.record_class, key) in _STRUCTS:
                value = [_struct_body(struct) for struct in value]
            body[key] = value
        return body

    def check_unknown_tag(self, number: int, version: int) -> None:
        """Raise CodecError for a tagged field that this program acts on in a later version, or cannot keep."""
        if number in self.tags:
            raise CodecError(
                f"version {version} of {self.name} has the tagged field {number}, which is {self.tags[number]} of a later version"
            )
        if self.record_class in _CHANGES:
            raise CodecError(f"the tagged field {number} of {self.name} is unknown; run a newer version of Steward")


def _struct_body(value: Any) -> Body:
    return {field.name: getattr(value, field.name) for field in fields(value)}


@cache
def _kinds_by_class() -> Mapping[type[MetadataRecord], _Kind]:
    return {record_class: _kind(record_class) for record_class in RECORD_CLASSES}


@cache
def _kinds_by_key() -> Mapping[int, _Kind]:
    found = {}
    for kind in _kinds_by_class().values():
        key = schema.definition(kind.name, kind.versions.lowest).api_key
        assert key is not None, "metadata records have API keys"
        found[key] = kind
    return found


def _kind(record_class: type[MetadataRecord]) -> _Kind:
    name = record_class.__name__
    (definition,) = schema.definitions(name)
    assert definition.flexible == schema.Versions(0, LATEST)
    readers = tuple((field.key, _array_reader(record_class, field)) for field in definition.fields)
    tags = {field.tag: field.key for field in definition.fields if field.tag is not None}
    return _Kind(record_class, schema.known_versions(name), tags, readers)


def _array_reader(record_class: type[MetadataRecord], field: schema.Field) -> Callable[[Any], Any] | None:
    if not field.is_array:
        return None
    struct = _STRUCTS.get((record_class, field.key))
    if struct is not None:
        return lambda values: tuple(struct(**value) for value in values)
    return lambda values: None if values is None else tuple(values)
