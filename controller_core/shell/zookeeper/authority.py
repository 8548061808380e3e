"""The authorizer of a process, put together: its rules, the ACLs that are followed while there is a session, guard and screens.

Leaves out what each of them does.
"""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from controller_core.model.cluster import Cluster
from controller_core.shell.admin.acls import AclService
from controller_core.shell.admin.topic_authorization import authorize_topics
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import Known
from controller_core.shell.zookeeper.acls import AclKeeper
from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_wire.api import ApiKey
from kafka_zookeeper.session import ZooKeeperSession


class Authority:
    """One for the life of a process; `cluster` gives the cluster while the process holds it."""

    def __init__(self, rules: Rules, cluster: Callable[[], Cluster | None]) -> None:
        self._cluster = cluster
        self._keeper: AclKeeper | None = None
        known = Known()
        self.guard = Guard(known, rules, self._topic_name, NEEDS)
        self.service = AclService(known, lambda: self._keeper)

    async def follow(self, session: ZooKeeperSession) -> None:
        """Follow the ACLs for as long as a session lasts: until cancelled."""
        keeper = self._keeper = AclKeeper(session, self.service.known)
        try:
            await keeper.follow()
        finally:
            self._keeper = None

    def before(
        self, handlers: Mapping[ApiKey, RequestHandler], settled: Callable[[], Awaitable[None]]
    ) -> dict[ApiKey, RequestHandler]:
        """Put screens before handlers that are judged topic by topic."""
        return authorize_topics(handlers, self.guard, self._cluster, settled)

    def _topic_name(self, topic_id: UUID) -> str | None:
        cluster = self._cluster()
        return None if cluster is None else cluster.topic_name(topic_id)
