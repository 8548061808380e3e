"""Authorizer of a controller process: rules, guard, authorization per topic, and the ACLs that are followed during each session."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from controller_core.model import Cluster
from controller_core.shell.admin.acls import AclService
from controller_core.shell.admin.topic_authorization import authorize_topics
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import AclCache
from controller_core.shell.zookeeper.acls import ZooKeeperAcls
from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_wire import ApiKey
from kafka_zookeeper.session import ZooKeeperSession


class ProcessAuthorizer:
    """Authorizer of one process; `cluster` returns the cluster's state on the active controller, None on a standby."""

    def __init__(self, rules: Rules, cluster: Callable[[], Cluster | None]) -> None:
        self._cluster = cluster
        self._acls: ZooKeeperAcls | None = None
        known = AclCache()
        self.guard = Guard(known, rules, self._topic_name, NEEDS)
        self.service = AclService(known, lambda: self._acls)

    async def follow(self, session: ZooKeeperSession) -> None:
        """Follow the ACLs in a session, until cancelled."""
        acls = self._acls = ZooKeeperAcls(session, self.service.known)
        try:
            await acls.follow()
        finally:
            self._acls = None

    def with_topic_authorization(
        self, handlers: Mapping[ApiKey, RequestHandler], wait_for_activation: Callable[[], Awaitable[None]]
    ) -> dict[ApiKey, RequestHandler]:
        """Return the handlers with authorization per topic."""
        return authorize_topics(handlers, self.guard, self._cluster, wait_for_activation)

    def _topic_name(self, topic_id: UUID) -> str | None:
        cluster = self._cluster()
        return None if cluster is None else cluster.topic_name(topic_id)
