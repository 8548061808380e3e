"""ACLs of the committed image, as the authorizer of a process uses them. Source: StandardAuthorizer, AclPublisher.

Every controller authorizes by what it has applied, standbys too. What changed since the last request is applied when the next one is
judged. An ACL with a number of a later version denies everything on its resource to all but super users: what it denies must not be allowed.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from controller_core.metadata.security_records import acl_binding
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_node.authorization.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Binding,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from kafka_node.authorization.acls import Acls

log = logging.getLogger(__name__)

LOCKED = Entry(WILDCARD_PRINCIPAL, WILDCARD, Operation.ALL, Permission.DENY)
"""Entry in place of one that is unknown."""


class CommittedImage(Protocol):
    """A controller, as this module uses it."""

    @property
    def committed_image(self) -> MetadataImage:
        """The image of what is committed and applied."""


class ImageAcls:
    """The ACLs of a controller's committed image. Implements KnownAcls."""

    def __init__(self, controller: CommittedImage) -> None:
        self.loaded = asyncio.Event()
        """Set by the process once the image is as new as the cluster's log was at the start."""
        self._controller = controller
        self._applied: Mapping[UUID, AccessControlEntryRecord] = {}
        self._locked: list[AccessControlEntryRecord] = []
        """ACLs that lock their resource; several may lock one."""
        self._acls = Acls()

    @property
    def acls(self) -> Acls:
        """The ACLs, as of now."""
        present = self._controller.committed_image.acls
        if present is not self._applied:
            self._follow(present)
        return self._acls

    def _follow(self, present: Mapping[UUID, AccessControlEntryRecord]) -> None:
        """Apply the differences of two images: the ACL of an id never changes."""
        removed = [record for acl_id, record in self._applied.items() if acl_id not in present]
        added = [record for acl_id, record in present.items() if acl_id not in self._applied]
        for record in removed:
            if (binding := applied_binding(record)) is not None:
                self._acls.put(binding.pattern, self._acls.of(binding.pattern) - {binding.entry})
        self._locked = [record for record in self._locked if record.id in present]
        for record in [*added, *self._locked]:
            if (binding := applied_binding(record)) is not None:
                self._acls.put(binding.pattern, self._acls.of(binding.pattern) | {binding.entry})
                if binding.entry == LOCKED and record not in self._locked:
                    log.error(
                        "Unknown kind of ACL; denying access to its resource for all but super users",
                        extra={"path": str(record.id)},
                    )
                    self._locked.append(record)
        self._applied = present


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
