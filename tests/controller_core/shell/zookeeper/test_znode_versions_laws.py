"""Law of the versions of znodes (ADR 21): a known version that a znode has means that the cluster's state has its content.

Any other znode is written by nothing: ZooKeeper refuses the version.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import events, zookeeper_events
from controller_core.model.changes import Change
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper.reading import read_topics
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.transitions import apply
from kafka_zookeeper import paths
from kafka_zookeeper.formats.topics import decode_topic, encode_topic
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.shell.zookeeper.world import NO_READ, World

PATH = paths.topic("orders")
ACTIONS = ("grow", "reread", "another process grows it", "read", "decide", "lose a write", "lose an answer")


class Term:
    """A store of one topic, the state that it delivers to, reads that are not decided on yet, and the last outcome."""

    def __init__(self) -> None:
        self.world = World()
        self.outcome = Outcome()
        self.read: list[zookeeper_events.TopicsChanged] = []
        self.world.store.deliver_to(self._deliver)

    async def _deliver(self, committed: Sequence[Change]) -> None:
        for change in committed:
            apply(self.world.cluster, change)

    async def begin(self) -> None:
        """Create the topic."""
        await self._commit([read_change(self.world.cluster, "new orders 0=1,2")], NO_READ)

    async def do(self, action: str, choice: int) -> None:
        """Do one thing; `choice` picks a read, and makes writes differ."""
        world = self.world
        match action:
            case "grow":
                number = len(world.cluster.topics["orders"].rows)
                change = read_change(world.cluster, f"partitions orders {number}={choice + 1},9")
                await self._commit([change], NO_READ)
            case "reread":
                await world.store.reread(world.cluster, self.outcome)
            case "another process grows it":
                found = decode_topic("orders", world.server.at(PATH).data)
                replicas = dict(found.replicas) | {len(found.replicas): (choice + 1, 7)}
                world.server.put(PATH, encode_topic(replace(found, replicas=replicas)))
            case "read":
                self.read.append(zookeeper_events.TopicsChanged(await read_topics(world.session, ["orders"])))
            case "decide" if self.read:
                event = self.read.pop(choice % len(self.read))
                await self._commit(decide(world.cluster, event).changes, event)
            case "lose a write" | "lose an answer":
                world.server.faults.append(Fault.NOT_DONE if action == "lose a write" else Fault.DONE)

    async def _commit(self, changes: Sequence[Change], event: events.Event) -> None:
        self.outcome = await self.world.store.commit(self.world.cluster, changes, event)

    def check(self) -> None:
        """Compare the known content with the written one."""
        cluster, written = self.world.cluster, self.world.server.at(PATH)
        known = self.world.store.versions.known("orders")
        rows = cluster.topics["orders"].rows.tolist()
        content = {cluster.name_of(row).partition: cluster.columns.replicas_of(row) for row in rows}
        found = dict(decode_topic("orders", written.data).replicas)
        assert known <= written.version
        assert known < written.version or content == found


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3)), max_size=30))
def test_a_known_version_means_known_content(actions: list[tuple[str, int]]) -> None:
    """Whatever is written, read, lost, refused and decided on late."""

    async def run() -> None:
        term = Term()
        await term.begin()
        for action, choice in actions:
            await term.do(action, choice)
            term.check()

    asyncio.run(run())
