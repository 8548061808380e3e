"""ACLs: `/kafka-acl/TYPE/NAME`, `/kafka-acl-extended/prefixed/TYPE/PREFIX`, and the notices that one has changed.

A notice names the resource whose ACLs are to be read again: `/kafka-acl-changes/acl_changes_N` a literal one, in plain text,
`/kafka-acl-extended-changes/acl_changes_N` a prefixed one, in JSON. Source: kafka.zk.ZkData, AclEntry, SecurityUtils, KIP-290.

Kafka takes a document that is no JSON for no ACLs at all; here that is a FormatError, since its reader must not take a torn
document for permission.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import FormatError, quote, shown

VERSION = 1
UNKNOWN = "Unknown"
"""What Kafka makes of an operation or a permission that it does not know: the entry stays and says nothing."""
OPERATIONS = (
    "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs",
    "IdempotentWrite", "CreateTokens", "DescribeTokens", "Any", UNKNOWN,
)  # fmt: skip
PERMISSIONS = ("Allow", "Deny", "Any", UNKNOWN)
RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
"""The types that have a znode each."""
PATTERN_TYPES = ("LITERAL", "PREFIXED")


@dataclass(frozen=True, slots=True, order=True)
class AclEntry:
    """One line: `principal` is TYPE:NAME; `operation` and `permission` are names of the two lists above."""

    principal: str
    permission: str
    operation: str
    host: str


@dataclass(frozen=True, slots=True, order=True)
class AclResource:
    """Whose ACLs: `resource_type` as in a path, `pattern_type` LITERAL or PREFIXED."""

    resource_type: str
    name: str
    pattern_type: str = "LITERAL"


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """Return the document of a resource's ACLs; Kafka leaves their order to chance, here it is theirs."""
    lines = ",".join(
        f'{{"principal":{quote(each.principal)},"permissionType":{quote(each.permission)},'
        f'"host":{quote(each.host)},"operation":{quote(each.operation)}}}'
        for each in sorted(set(entries))
    )
    return f'{{"acls":[{lines}],"version":{VERSION}}}'.encode()


def decode_acls(path: str, data: bytes | None) -> frozenset[AclEntry]:
    """Read a resource's ACLs; no data are no ACLs."""
    if not data:
        return frozenset()
    document = documents.read_object(path, data)
    version = documents.int_field(path, document, "version")
    if version != VERSION:
        raise FormatError(path, f"version must be {VERSION}, found {version}")
    entries = documents.as_list(path, "'acls'", documents.field(path, document, "acls"))
    return frozenset(_entry(path, documents.as_object(path, "an ACL", each)) for each in entries)


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
    """Return the name as it is written; one all in capitals or small letters is known as well."""
    upper = name.upper()
    return next((each for each in names if each.upper() == upper), UNKNOWN)


def encode_acl_change(resource: AclResource) -> bytes:
    """Return the notice that this resource's ACLs have changed; it belongs below `paths.acl_changes` of the pattern type."""
    upper = _in_capitals(resource.resource_type)
    if resource.pattern_type == "LITERAL":
        return f"{upper}:{resource.name}".encode()
    return (
        f'{{"version":{VERSION},"resourceType":"{upper}","name":{quote(resource.name)},'
        f'"patternType":{quote(resource.pattern_type)}}}'
    ).encode()


def _in_capitals(resource_type: str) -> str:
    return "".join(
        f"_{letter}" if place and letter.isupper() else letter.upper() for place, letter in enumerate(resource_type)
    )


_RESOURCE_FIELDS = ("resourceType", "name", "patternType")
_TYPES = {_in_capitals(each): each for each in RESOURCE_TYPES}


def decode_acl_change(name: str, data: bytes | None) -> AclResource:
    """Read whose ACLs have changed, from the notice of a literal resource; `name` is the notice's own."""
    path = paths.child(paths.ACL_CHANGES, name)
    if data is None or len(data) > documents.MAX_DOCUMENT_BYTES:
        raise FormatError(path, "there is no TYPE:NAME of reasonable length")
    try:
        resource_type, colon, resource = data.decode("utf-8").partition(":")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"not text ({error}): {shown(data)}") from error
    if not colon:
        raise FormatError(path, f"TYPE:NAME was expected, found {shown(data)}")
    return _resource(path, resource_type, resource, "LITERAL")


def decode_extended_acl_change(name: str, data: bytes | None) -> AclResource:
    """Read whose ACLs have changed, from the notice of a resource that is not literal; `name` is the notice's own."""
    path = paths.child(paths.EXTENDED_ACL_CHANGES, name)
    document = documents.read_object(path, data)
    if strange := sorted(document.keys() - {"version", *_RESOURCE_FIELDS}):
        raise FormatError(path, f"the fields {shown(strange)} are none of a notice's")
    version = documents.int_field(path, document, "version")
    if version > VERSION:
        raise FormatError(path, f"version must be {VERSION}, found {version}")
    return _resource(path, *(documents.text_field(path, document, key) for key in _RESOURCE_FIELDS))


def _resource(path: str, resource_type: str, name: str, pattern_type: str) -> AclResource:
    known, pattern = _TYPES.get(resource_type.upper()), pattern_type.upper()
    if known is None or pattern not in PATTERN_TYPES:
        raise FormatError(path, f"there are no ACLs of {shown(resource_type)} and {shown(pattern_type)}")
    try:
        paths.acls(known, name, prefixed=pattern == "PREFIXED")
    except ValueError as error:
        raise FormatError(path, str(error)) from error
    return AclResource(known, name, pattern)
