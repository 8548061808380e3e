"""Creation and deletion of ACLs as records. Source: AclControlManager of Kafka 4.3.1.

The image has the records by id, so that each request costs one pass over them; nothing else does.
"""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from controller_core.metadata.payloads import MAX_RECORDS
from controller_core.metadata.record_decision import RecordDecision
from kafka_metadata import failures, records, security_records
from kafka_metadata.image import MetadataImage
from kafka_node.authorization.acl import Binding, BindingFilter, Operation, PatternType, Permission, ResourceType
from kafka_wire import ErrorCode, Failure

UNKNOWN_PATTERN_FILTER = Failure(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
UNKNOWN_ENTRY_FILTER = Failure(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
TOO_MANY_DELETIONS = Failure(
    ErrorCode.INVALID_REQUEST, f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
)

Deleted = list[Binding] | Failure
"""The ACLs that one filter selects, or why it is refused."""


def create_acls(image: MetadataImage, bindings: Iterable[Binding], ids: Iterator[UUID]) -> RecordDecision:
    """Create valid ACLs; one that exists or is listed twice adds no record. `ids` draws random ids without end. The reply is None."""
    wanted = {
        _key(record): record
        for record in (security_records.acl_record(_draw(image, ids), binding) for binding in bindings)
    }
    for record in image.acls.values():
        wanted.pop(_key(record), None)
    return RecordDecision(tuple(wanted.values()), None)


def delete_acls(image: MetadataImage, filters: Sequence[BindingFilter]) -> RecordDecision:
    """Delete the ACLs that filters select; an ACL is listed under each filter that selects it. The reply is a list of Deleted.

    More deletions than one batch holds are refused for all filters: a part of them would be missed.
    """
    known = [(acl_id, binding) for acl_id, record in image.acls.items() if (binding := _binding(record)) is not None]
    removed: dict[UUID, None] = {}
    found: list[Deleted] = []
    for wanted in filters:
        if (refused := _refused(wanted)) is not None:
            found.append(refused)
            continue
        selected = [
            (acl_id, binding)
            for acl_id, binding in known
            if wanted.pattern.matches(binding.pattern) and wanted.entry.matches(binding.entry)
        ]
        removed |= dict.fromkeys(acl_id for acl_id, _ in selected)
        found.append(sorted(binding for _, binding in selected))
    if len(removed) > MAX_RECORDS:
        return RecordDecision((), [TOO_MANY_DELETIONS] * len(filters))
    return RecordDecision(tuple(map(records.RemoveAccessControlEntryRecord, removed)), found)


def _draw(image: MetadataImage, ids: Iterator[UUID]) -> UUID:
    return next(acl_id for acl_id in ids if acl_id not in image.acls)


def _key(record: records.AccessControlEntryRecord) -> tuple[object, ...]:
    """Return an ACL without its id."""
    return (
        *(record.resource_type, record.resource_name, record.pattern_type),
        *(record.principal, record.host, record.operation, record.permission_type),
    )


def _binding(record: records.AccessControlEntryRecord) -> Binding | None:
    """Return the ACL of a record; None for one of a later version, which no filter can name."""
    try:
        return security_records.acl_binding(record)
    except failures.MetadataError:
        return None


def _refused(wanted: BindingFilter) -> Failure | None:
    pattern, entry = wanted.pattern, wanted.entry
    if pattern.resource_type is ResourceType.UNKNOWN or pattern.pattern_type is PatternType.UNKNOWN:
        return UNKNOWN_PATTERN_FILTER
    if entry.operation is Operation.UNKNOWN or entry.permission is Permission.UNKNOWN:
        return UNKNOWN_ENTRY_FILTER
    return None
