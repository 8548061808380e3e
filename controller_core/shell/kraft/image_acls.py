"""ACLs of the committed image, as the authorizer of a process uses them. Source: StandardAuthorizer, AclPublisher.

Every controller authorizes by what it has applied, standbys too. What changed since the last request is applied when the next one is
judged.
"""

import asyncio
import logging
from typing import Protocol

from kafka_metadata.followed_acls import FollowedAcls
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_node.authorization.acls import Acls

log = logging.getLogger(__name__)


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
        self._followed = FollowedAcls()

    @property
    def acls(self) -> Acls:
        """The ACLs, as of now."""
        log_locked(self._followed.follow(self._controller.committed_image.acls))
        return self._followed.acls


def log_locked(records: tuple[AccessControlEntryRecord, ...]) -> None:
    """Log ACLs that are unknown."""
    for record in records:
        log.error(
            "Unknown kind of ACL; denying access to its resource for all but super users",
            extra={"path": str(record.id)},
        )
