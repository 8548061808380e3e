"""Security of a controller in KRaft mode: authorizer and SCRAM users from the committed image, and the requests that change them (ADR 61).

Every controller authorizes by what it has applied, standbys too. What changed since the last request is applied when the next one is
judged. Source: StandardAuthorizer, AclPublisher.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from random import SystemRandom
from typing import Protocol
from uuid import UUID

from controller_core.metadata.delegation_tokens import sweep_expired_tokens
from controller_core.metadata.feature_changes import QuorumFeatures
from controller_core.quorum_mode.required_rights import NEEDS
from controller_core.shell.active import OverloadedError, TermEndedError
from controller_core.shell.kraft.admin.delegation_tokens import now_ms
from controller_core.shell.kraft.admin.security_table import SecurityParts, security_handlers
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.kraft.features import SUPPORTED
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.settings import QuorumSettings
from controller_core.shell.quorum.update_features import update_kraft_version
from kafka_metadata.followed_acls import FollowedAcls
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_metadata.security_records import scram_credential
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.guard import EVERYTHING, Ask, Guard
from kafka_node.context import RequestContext
from kafka_wire.sasl import scram_decoy, scram_keys

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


class ImageScramUsers:
    """The SCRAM users of a controller's committed image. Implements CredentialSource."""

    def __init__(self, controller: CommittedImage) -> None:
        self._controller = controller
        self._counted: tuple[object, dict[str, Counter[scram_decoy.CredentialShape]]] = (None, {})
        """The credentials that were counted last, and their shapes by mechanism."""

    async def credential(self, mechanism: str, user: str) -> scram_keys.ScramCredential | None:
        """Return a user's credential; None: there is none."""
        key = (scram_keys.SCRAM_MECHANISMS[mechanism].type_id, user)
        record = self._controller.committed_image.scram_credentials.get(key)
        return None if record is None else scram_credential(record)

    async def shapes(self, mechanism: str) -> Mapping[scram_decoy.CredentialShape, int]:
        """Count the users' credentials by shape."""
        current = self._controller.committed_image.scram_credentials
        if self._counted[0] is not current:
            names = {mechanism.type_id: mechanism.name for mechanism in scram_keys.SCRAM_MECHANISMS.values()}
            shapes: dict[str, Counter[scram_decoy.CredentialShape]] = {name: Counter() for name in names.values()}
            for (type_id, _), record in current.items():
                if type_id in names:
                    shapes[names[type_id]][scram_decoy.shape_of(scram_credential(record))] += 1
            self._counted = (current, shapes)
        return self._counted[1].get(mechanism, {})


class Security:
    """The parts of one process."""

    def __init__(self, driver: Driver, controller: KRaftController, settings: QuorumSettings) -> None:
        self._driver = driver
        self._controller = controller
        self._settings = settings
        self._sweep: asyncio.Task[None] | None = None
        self.acls = ImageAcls(controller)
        self.scram_users = ImageScramUsers(controller)
        self.guard = (
            None if settings.authorizer is None else Guard(self.acls, settings.authorizer, self._topic_name, NEEDS)
        )
        parts = SecurityParts(
            acls=None if self.guard is None else self.acls,
            asking=self._asking,
            tokens=settings.tokens,
            features=self._features,
            kraft_version=partial(update_kraft_version, driver),
            random=SystemRandom(),
        )
        self.handlers = security_handlers(controller, parts)
        controller.on_advanced.append(self._advanced)
        controller.on_elected.append(self._elected)
        controller.on_deposed.append(self.close)

    def close(self) -> None:
        """End the removal of expired tokens."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _asking(self, context: RequestContext) -> Ask:
        return EVERYTHING if self.guard is None else self.guard.asking(context)

    def _topic_name(self, topic_id: UUID) -> str | None:
        topic = self._controller.committed_image.topics.get(topic_id)
        return None if topic is None else topic.name

    def _features(self) -> QuorumFeatures:
        node = self._driver.node
        voters = () if node is None else tuple(voter.key.id for voter in node.voters.voters)
        minimum = self._settings.controller.min_insync_replicas
        return QuorumFeatures(self._settings.node_id, SUPPORTED, voters, minimum, self._driver.kraft_version)

    def _advanced(self, _size_bytes: int) -> None:
        """Note that the ACLs are known: everything that a leader has committed is applied (StandardAuthorizer.completeInitialLoad)."""
        node = self._driver.node
        if node is None or node.leader_id is None or self.acls.loaded.is_set():
            return
        if self._controller.committed.end_offset >= node.log.high_watermark:
            self.acls.loaded.set()
            log.info("ACLs are loaded", extra={"acls": len(self._controller.committed_image.acls)})

    def _elected(self) -> None:
        self.acls.loaded.set()
        if self._settings.tokens.secret_key is not None:
            self.close()
            self._sweep = asyncio.create_task(self._remove_expired_tokens(), name="remove expired delegation tokens")

    async def _remove_expired_tokens(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._settings.token_check_interval_ms / 1000)
                try:
                    while await self._controller.write(partial(sweep_expired_tokens, now_ms=now_ms())):
                        pass
                except OverloadedError:
                    continue  # The next check removes them.
        except TermEndedError:
            return
