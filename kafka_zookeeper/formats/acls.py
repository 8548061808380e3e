"""ACLs: `/kafka-acl/TYPE/NAME`, `/kafka-acl-extended/prefixed/TYPE/PREFIX`, and their change notifications.

A notification names the resource whose ACLs must be read again: `/kafka-acl-changes/acl_changes_N` a literal one, in plain text,
`/kafka-acl-extended-changes/acl_changes_N` a prefixed one, in JSON. Source: kafka.zk.ZkData, AclEntry, SecurityUtils, KIP-290.

Kafka reads a document that is not JSON as an empty set of ACLs; here that is a FormatError, because without its Deny entries a damaged
document would grant permissions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import FormatError, quote, shown

VERSION = 1
UNKNOWN = "Unknown"
"""Kafka's replacement for an unknown operation or permission: the entry is kept without effect."""
OPERATIONS = (
    "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs",
    "IdempotentWrite", "CreateTokens", "DescribeTokens", "Any", UNKNOWN,
)  # fmt: skip
PERMISSIONS = ("Allow", "Deny", "Any", UNKNOWN)
RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
"""Resource types; each has a znode."""
PATTERN_TYPES = ("LITERAL", "PREFIXED")


@dataclass(frozen=True, slots=True, order=True)
class AclEntry:
    """One ACL: `principal` is TYPE:NAME; `operation` and `permission` are names of the two lists above."""

    principal: str
    permission: str
    operation: str
    host: str


@dataclass(frozen=True, slots=True, order=True)
class AclResource:
    """Resource of ACLs: `resource_type` as in a path, `pattern_type` LITERAL or PREFIXED."""

    resource_type: str
    name: str
    pattern_type: str = "LITERAL"


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """Return the document of a resource's ACLs. Kafka writes them in no defined order, here they are sorted."""
    lines = ",".join(
        f'{{"principal":{quote(entry.principal)},"permissionType":{quote(entry.permission)},'
        f'"host":{quote(entry.host)},"operation":{quote(entry.operation)}}}'
        for entry in sorted(set(entries))
    )
    return f'{{"acls":[{lines}],"version":{VERSION}}}'.encode()


def decode_acls(path: str, data: bytes | None) -> frozenset[AclEntry]:
    """Decode a resource's ACLs; no data means no ACLs."""
    if not data:
        return frozenset()
    document = documents.read_object(path, data)
    version = documents.int_field(path, document, "version")
    if version != VERSION:
        raise FormatError(path, f"version must be {VERSION}, found {version}")
    entries = documents.as_list(path, "'acls'", documents.field(path, document, "acls"))
    return frozenset(_entry(path, documents.as_object(path, "an ACL", entry)) for entry in entries)


def _entry(path: str, document: documents.Document) -> AclEntry:
    principal = documents.text_field(path, document, "principal")
    if ":" not in principal:
        raise FormatError(path, f"a principal must be TYPE:NAME, found {shown(principal)}")
    return AclEntry(
        principal,
        _known(PERMISSIONS, documents.text_field(path, document, "permissionType")),
        _known(OPERATIONS, documents.text_field(path, document, "operation")),
        documents.text_field(path, document, "host"),
    )


def _known(names: tuple[str, ...], name: str) -> str:
    """Return a name in the spelling of the list, ignoring case; UNKNOWN for an unknown name."""
    upper = name.upper()
    return next((name for name in names if name.upper() == upper), UNKNOWN)


def encode_acl_change(resource: AclResource) -> bytes:
    """Return the change notification of a resource's ACLs, for a znode below `paths.acl_changes` of the pattern type."""
    upper = _upper_snake(resource.resource_type)
    if resource.pattern_type == "LITERAL":
        return f"{upper}:{resource.name}".encode()
    return (
        f'{{"version":{VERSION},"resourceType":"{upper}","name":{quote(resource.name)},'
        f'"patternType":{quote(resource.pattern_type)}}}'
    ).encode()


def _upper_snake(resource_type: str) -> str:
    return "".join(
        f"_{letter}" if place and letter.isupper() else letter.upper() for place, letter in enumerate(resource_type)
    )


_RESOURCE_FIELDS = ("resourceType", "name", "patternType")
_TYPES = {_upper_snake(resource_type): resource_type for resource_type in RESOURCE_TYPES}


def decode_acl_change(name: str, data: bytes | None) -> AclResource:
    """Decode the change notification of a literal resource's ACLs; `name` is the name of its znode."""
    path = paths.child(paths.ACL_CHANGES, name)
    if data is None or len(data) > documents.MAX_DOCUMENT_BYTES:
        raise FormatError(path, f"expected TYPE:NAME of at most {documents.MAX_DOCUMENT_BYTES} bytes")
    try:
        resource_type, colon, resource = data.decode("utf-8").partition(":")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"not text ({error}): {shown(data)}") from error
    if not colon:
        raise FormatError(path, f"expected TYPE:NAME, found {shown(data)}")
    return _resource(path, resource_type, resource, "LITERAL")


def decode_extended_acl_change(name: str, data: bytes | None) -> AclResource:
    """Decode the change notification of a prefixed resource's ACLs; `name` is the name of its znode."""
    path = paths.child(paths.EXTENDED_ACL_CHANGES, name)
    document = documents.read_object(path, data)
    if unknown := sorted(document.keys() - {"version", *_RESOURCE_FIELDS}):
        raise FormatError(path, f"a change notification has the unknown fields {shown(unknown)}")
    version = documents.int_field(path, document, "version")
    if version > VERSION:
        raise FormatError(path, f"version must be {VERSION}, found {version}")
    return _resource(path, *(documents.text_field(path, document, key) for key in _RESOURCE_FIELDS))


def _resource(path: str, resource_type: str, name: str, pattern_type: str) -> AclResource:
    known, pattern = _TYPES.get(resource_type.upper()), pattern_type.upper()
    if known is None or pattern not in PATTERN_TYPES:
        raise FormatError(path, f"unknown resource type {shown(resource_type)} or pattern type {shown(pattern_type)}")
    try:
        paths.acls(known, name, prefixed=pattern == "PREFIXED")
    except ValueError as error:
        raise FormatError(path, str(error)) from error
    return AclResource(known, name, pattern)
