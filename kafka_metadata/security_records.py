"""Records of ACLs and SCRAM credentials as the values that the authorizer and the listeners use, and back.

Source: StandardAcl and ScramImage of Kafka.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar
from uuid import UUID

from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord, UserScramCredentialRecord
from kafka_node.authorization.acl import Binding, Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.scram_requests import MECHANISM_OF, Config
from kafka_wire.sasl.scram_keys import ScramCredential, ScramMechanism, encode_credential

Number = TypeVar("Number", bound=IntEnum)


def acl_binding(record: AccessControlEntryRecord) -> Binding:
    """Return the ACL of a record. Raises MetadataError for a number that is unknown: what such an ACL denies must not be allowed."""
    try:
        pattern = Pattern(
            _known(ResourceType, record.resource_type), record.resource_name, _pattern_type(record.pattern_type)
        )
        operation, permission = _known(Operation, record.operation), _known(Permission, record.permission_type)
    except ValueError as error:
        raise MetadataError(
            f"The ACL {record.id} cannot be applied: {error}; run a newer version of Steward."
        ) from error
    return Binding(pattern, Entry(record.principal, record.host, operation, permission))


def acl_record(acl_id: UUID, binding: Binding) -> AccessControlEntryRecord:
    """Return the record of an ACL."""
    pattern, entry = binding.pattern, binding.entry
    return AccessControlEntryRecord(
        acl_id,
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission,
    )


def scram_credential(record: UserScramCredentialRecord) -> ScramCredential:
    """Return the credential of a record."""
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)


def scram_record(user: str, mechanism: ScramMechanism, credential: ScramCredential) -> UserScramCredentialRecord:
    """Return the record of a user's credential."""
    return UserScramCredentialRecord(
        user, mechanism.type_id, credential.salt, credential.stored_key, credential.server_key, credential.iterations
    )


def scram_credentials_of(image: MetadataImage, mechanism: ScramMechanism) -> Mapping[str, ScramCredential]:
    """Return the credentials of a mechanism by user."""
    return {
        user: scram_credential(record)
        for (number, user), record in image.scram_credentials.items()
        if number == mechanism.type_id
    }


def scram_config_of(image: MetadataImage, user: str) -> Config:
    """Return a user's credentials as texts by mechanism."""
    return {
        mechanism.name: encode_credential(scram_credential(record))
        for type_id, mechanism in MECHANISM_OF.items()
        if (record := image.scram_credentials.get((type_id, user))) is not None
    }


def scram_configs_of(image: MetadataImage) -> Mapping[str, Config]:
    """Return the credentials of all users, ordered by name."""
    return {user: scram_config_of(image, user) for user in sorted({user for _, user in image.scram_credentials})}


def _known(kind: type[Number], number: int) -> Number:
    """Return the value of a number. Raises ValueError for UNKNOWN and ANY, which only filters have, and for numbers of later versions."""
    value = kind(number)
    if value.name in {"UNKNOWN", "ANY"}:
        raise ValueError(f"{number} is no {kind.__name__} of an ACL")
    return value


def _pattern_type(number: int) -> PatternType:
    pattern_type = _known(PatternType, number)
    if pattern_type is PatternType.MATCH:
        raise ValueError(f"{number} is no {PatternType.__name__} of an ACL")
    return pattern_type
