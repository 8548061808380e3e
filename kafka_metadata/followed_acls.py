"""ACLs of an image as the authorizer uses them, kept up to date by the differences between two images.

An ACL with a number of a later version denies everything on its resource to all but super users: what it denies must not be allowed.
Source: StandardAuthorizer, AclPublisher.
"""

from collections.abc import Mapping
from uuid import UUID

from kafka_metadata.failures import MetadataError
from kafka_metadata.records import AccessControlEntryRecord
from kafka_metadata.security_records import acl_binding
from kafka_node.authorization.acl import LOCKED, WILDCARD, Binding, Pattern, PatternType, ResourceType
from kafka_node.authorization.acls import Acls


class FollowedAcls:
    """The ACLs of the image that was followed last."""

    def __init__(self) -> None:
        self.acls = Acls()
        self._applied: Mapping[UUID, AccessControlEntryRecord] = {}
        self._locked: list[AccessControlEntryRecord] = []
        """ACLs that lock their resource; several may lock one."""

    def follow(self, current: Mapping[UUID, AccessControlEntryRecord]) -> tuple[AccessControlEntryRecord, ...]:
        """Apply the differences from the image before: the ACL of an id never changes. Return those that lock a resource from now on."""
        if current is self._applied:
            return ()
        removed = [record for acl_id, record in self._applied.items() if acl_id not in current]
        added = [record for acl_id, record in current.items() if acl_id not in self._applied]
        for record in removed:
            if (binding := applied_binding(record)) is not None:
                self.acls.put(binding.pattern, self.acls.of(binding.pattern) - {binding.entry})
        self._locked = [record for record in self._locked if record.id in current]
        locked_now = []
        for record in [*added, *self._locked]:
            if (binding := applied_binding(record)) is not None:
                self.acls.put(binding.pattern, self.acls.of(binding.pattern) | {binding.entry})
                if binding.entry == LOCKED and record not in self._locked:
                    locked_now.append(record)
        self._locked += locked_now
        self._applied = current
        return tuple(locked_now)


def applied_binding(record: AccessControlEntryRecord) -> Binding | None:
    """Return the ACL of a record; None for a type of resources that no request of this version is about."""
    try:
        return acl_binding(record)
    except MetadataError:
        if record.resource_type not in set(ResourceType):
            return None
        is_known = record.pattern_type in {PatternType.LITERAL, PatternType.PREFIXED}
        name, kind = (record.resource_name, record.pattern_type) if is_known else (WILDCARD, PatternType.LITERAL)
        return Binding(Pattern(ResourceType(record.resource_type), name, PatternType(kind)), LOCKED)
