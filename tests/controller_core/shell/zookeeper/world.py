"""A store of one active term over an in-memory ZooKeeper: commands of the golden scripts, in addition to those of `other_processes`.

rewrite PATH               another process writes the same data again
another controller         another process is elected
given CHANGE               apply a change in memory (see `vocabulary`)
written CHANGE             apply a change in memory and write it
commit CHANGE | CHANGE     commit changes; print requests and outcome, and apply what was committed
reread                     read again what was refused; print and apply what is found
tree PATH                  print a znode and its descendants
"""

from controller_core.model import Cluster
from controller_core.model.changes import Change
from controller_core.model.events import RepairPartitions
from controller_core.model.zookeeper_events import TopicsRead
from controller_core.shell.active import TermEndedError
from controller_core.shell.store import Outcome, StoreError
from controller_core.shell.zookeeper.refresh import refresh
from controller_core.shell.zookeeper.store import Store
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.zookeeper_mode.transitions import apply
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE
from kafka_zookeeper import paths
from tests.controller_core.shell.zookeeper.fake_zookeeper import data_text
from tests.controller_core.shell.zookeeper.other_processes import OtherProcesses
from tests.controller_core.shell.zookeeper.vocabulary import change_text, joined, read_change, read_event, read_versions

CONTROLLER = 1000
CONTROLLER_EPOCH = 9
NO_READ = RepairPartitions()
"""An event that was read from no znode."""


class World(OtherProcesses):
    """An active term of controller epoch 9."""

    def __init__(self) -> None:
        super().__init__()
        for parent in (paths.TOPICS, paths.BROKER_IDS, "/config/topics", paths.DELETE_TOPICS):
            self.server.put(parent)
        self.server.put(paths.CONTROLLER_EPOCH, str(CONTROLLER_EPOCH - 1).encode())
        self.server.put(paths.CONTROLLER_EPOCH, str(CONTROLLER_EPOCH).encode())
        self.session = self.server.session()
        self.store = Store(self.session, epoch_version=self.server.at(paths.CONTROLLER_EPOCH).version)
        self.cluster = Cluster(CONTROLLER, CONTROLLER_EPOCH)
        self.outcome = Outcome()

    async def do(self, command: str) -> list[str]:
        """Carry out one command."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "given":
                change = read_change(self.cluster, rest)
                apply(self.cluster, change)
                self.store.versions.note(change, self.store.versions.expected(change, read_versions(rest)))
            case "written":
                change = read_change(self.cluster, rest)
                assert (await self.store.commit(self.cluster, [change], NO_READ)).is_whole
                apply(self.cluster, change)
                self.server.lines.clear()
            case "commit":
                texts = rest.split(" | ")
                return await self._commit([read_change(self.cluster, text) for text in texts], read_event(texts))
            case "reread":
                return await self._reread()
            case "tree":
                return self.tree(rest)
            case _:
                self.run_other(command)
        return []

    def run_other(self, command: str) -> None:
        """Run a command of another process."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "rewrite":
                self.server.put(rest, self.server.at(rest).data)
            case "another":
                raised = int(self.server.at(paths.CONTROLLER_EPOCH).data or b"0") + 1
                self.server.put(paths.CONTROLLER_EPOCH, str(raised).encode())
            case _:
                super().run_other(command)

    def requests(self) -> list[str]:
        """Requests to ZooKeeper since the last call."""
        lines, self.server.lines = self.server.lines, []
        return lines

    def tree(self, path: str) -> list[str]:
        """Print a znode and its descendants."""
        found = sorted(znode for znode in self.server.znodes if znode == path or znode.startswith(f"{path}/"))
        return [f"{path} {data_text(self.server.at(path).data)}" for path in found] or [f"{path} is not there"]

    async def _commit(self, changes: list[Change], event: TopicsRead) -> list[str]:
        try:
            self.outcome = await self.store.commit(self.cluster, changes, event)
        except (TermEndedError, StoreError) as error:
            return [*self.requests(), f"{type(error.__cause__ or error).__name__}: {error}"]
        lines = [f"committed: {change_text(self.cluster, change, NO_ZNODE)}" for change in self.outcome.committed]
        if self.outcome.stale_rows:
            names = (self.cluster.name_of(row) for row in self.outcome.stale_rows)
            lines.append(f"stale: {joined(f'{topic}-{partition}' for topic, partition in names)}")
        lines += [f"stale: topic {name}" for name in self.outcome.stale_topics]
        lines += ["stale: producer ids"] if self.outcome.stale_producer_ids else []
        lines += ["unknown"] if self.outcome.unknown else []
        for change in self.outcome.committed:
            apply(self.cluster, change)
        return [*self.requests(), *lines]

    async def _reread(self) -> list[str]:
        versions = self.store.versions
        found = await refresh(self.session, self.cluster, self.outcome, versions, UnreadableTopics())
        expected = [versions.expected(change, found.versions) for change in found.changes]
        based = list(zip(found.changes, expected, strict=True))
        lines = [f"found: {change_text(self.cluster, *change)}" for change in based]
        lines += [f"unknown topic: {record.name} version {record.version}" for record in found.unknown_topics]
        for change, version in based:
            apply(self.cluster, change)
            versions.note(change, version)
        return [*self.requests(), *(lines or ["found: nothing new"])]
