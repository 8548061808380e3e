"""Deletes notices of changed ACLs once they are old: without a broker that has an authorizer nobody else does.

A notice is old when this process has seen it for a quarter of an hour. Kafka takes ZooKeeper's time of its creation and the broker's own
clock; two clocks that disagree would have us delete what somebody has not read yet.

Source: ZkNodeChangeNotificationListener.purgeObsoleteNotifications. Leaves out reading notices (keeper).
"""

from collections.abc import Callable, Collection

from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import ANY_VERSION, Delete

MAX_AGE_S = 15 * 60
"""As long as brokers keep them (changeExpirationMs): whoever reads slower than that reads everything anew."""
MAX_PURGED_AT_ONCE = 100
"""Notices deleted at one look, a millisecond or so each: changes of ACLs wait meanwhile."""

Notice = tuple[bool, str]
"""Whether it is about prefixed patterns, and its name."""


class Purging:
    """What has been seen since when; `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[Notice, float] = {}

    def old_among(self, notices: Collection[Notice]) -> list[Notice]:
        """Tell which of the present notices are to go now, the oldest first; those that are gone are forgotten."""
        now = self._clock()
        self._since = {notice: self._since.get(notice, now) for notice in notices}
        old = [notice for notice, since in self._since.items() if now - since > MAX_AGE_S]
        return sorted(old, key=lambda notice: notice[1])[:MAX_PURGED_AT_ONCE]

    async def purge(self, session: ZooKeeperSession, notices: Collection[Notice]) -> None:
        """Delete what is old. That one is gone already, or not deleted, is no matter: the next look tries again."""
        for prefixed, name in self.old_among(notices):
            await session.multi([Delete(paths.child(paths.acl_changes(prefixed=prefixed), name), ANY_VERSION)])
