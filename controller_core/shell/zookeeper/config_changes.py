"""Reading what notices of changed configurations name: topics' own settings, and the brokers' dynamic default.

Whoever changes a configuration writes it and leaves a notice under /config/changes for all brokers. A notice is only a hint
where to look. It is nobody's to remove but the brokers', who do so after a quarter of an hour, since each of them has to hear
it: so what was read before is remembered, and one that cannot be read is named in the log once and left to them.

With its first look a tenure reads all that is there. What was changed before it began, and what changed while its state was
being read, is found that way.

What brokers have by themselves, they are asked for (`learning`): a notice of theirs is passed on.

Source: ConfigEntityChangeNotificationZNode, ZkNodeChangeNotificationListener, ZkConfigManager. Leaves out what follows
(`cluster.unclean_election`), and all configurations that are not the controller's business.
"""

from collections.abc import Callable

from controller_core.model.changes import BrokerDefault
from controller_core.model.cluster import Cluster
from controller_core.model.events import Event, UncleanElectionRead
from controller_core.shell.zookeeper.armed import ArmedReads
from controller_core.shell.zookeeper.notices import read_notices
from controller_core.shell.zookeeper.reading import read_unclean_default, read_unclean_topics
from kafka_zookeeper import paths
from kafka_zookeeper.formats.configs import DEFAULT_ENTITY, EntityType, decode_config_change
from kafka_zookeeper.session import ZooKeeperSession

BROKERS_DEFAULT = f"{EntityType.BROKERS}/{DEFAULT_ENTITY}"


class ConfigChanges:
    """The looks at notices of changed configurations, of one tenure; each runs in a turn in which nobody else writes."""

    def __init__(self, cluster: Cluster, session: ZooKeeperSession, brokers_changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._session = session
        self._brokers_changed = brokers_changed
        self._seen: frozenset[str] | None = None
        """Names of the notices that were there at the last look; None before the first."""

    async def look(self, reads: ArmedReads) -> Event | None:
        """Read what is set now, of all that a new notice names."""
        names = frozenset(await reads.children(paths.CONFIG_CHANGES) or [])
        is_first = self._seen is None
        fresh = sorted(names - (self._seen or frozenset()))
        complaint = "a notice of a changed configuration cannot be read"
        # By their path below /config.
        entities = set(await read_notices(self._session, paths.CONFIG_CHANGES, fresh, decode_config_change, complaint))
        self._seen = names
        if any(entity.startswith(f"{EntityType.BROKERS}/") for entity in entities):
            self._brokers_changed()
        prefix = f"{EntityType.TOPICS}/"
        named = sorted(entity.removeprefix(prefix) for entity in entities if entity.startswith(prefix))
        known = [name for name in named if name in self._cluster.topics]
        found = await read_unclean_topics(self._session, known) if known else {}
        topics = {name: found.get(name) for name in known}
        defaults: dict[BrokerDefault, bool | None] = {}
        if is_first or BROKERS_DEFAULT in entities:
            defaults[BrokerDefault.DYNAMIC] = await read_unclean_default(self._session)
        return UncleanElectionRead(topics, defaults) if topics or defaults else None
