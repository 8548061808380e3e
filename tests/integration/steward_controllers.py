"""A cluster of stock Kafka 4.3 brokers whose controllers are Steward's, which run in the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from controller_core.model import TopicPartition, events
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.kraft.state_machine import KRaftStateMachine
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess
from lab.downloads.jars import NEWEST_KAFKA_VERSION
from lab.peers.kraft import KraftNode
from lab.processes.folder import lab_folder
from lab.processes.loop_thread import LoopThread
from lab.processes.ports import free_port
from lab.processes.waiting import wait_until
from tests.controller_core.shell.quorum.members import CLUSTER_ID, Member

PATIENCE_S = 60.0

SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}


class ControllerMember(Member):
    """A node of the quorum with its controller."""

    async def begin(self) -> None:
        """Start the node."""
        self.process = QuorumProcess(self.settings, NodeOptions(metrics_port=0), KRaftStateMachine)
        self._task = asyncio.create_task(self.process.run())

    @property
    def controller(self) -> KRaftController | None:
        """The controller, once the process has made it."""
        machine = None if self.process is None else self.process.state_machine
        return machine.controller if isinstance(machine, KRaftStateMachine) else None


class StewardCluster:
    """Controllers by id from 101, and brokers by id from 1."""

    def __init__(self, folder: Path, controllers: int, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.brokers: dict[int, KraftNode] = {}
        ports = {101 + place: free_port() for place in range(controllers)}
        self.voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
        self.members = {
            node_id: ControllerMember(folder, node_id, ports, {**SETTINGS, **settings}) for node_id in ports
        }
        self.loop = LoopThread("controllers")

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(node.address for node in self.brokers.values())

    def active(self) -> ControllerMember:
        """Return the member whose controller is active."""
        wait_until(lambda: self._active() is not None, timeout_s=PATIENCE_S, what="there is an active controller")
        found = self._active()
        assert found is not None
        return found

    def _active(self) -> ControllerMember | None:
        found = (
            member for member in self.members.values() if member.controller is not None and member.controller.is_active
        )
        return next(found, None)

    def wait_for_registration(self) -> None:
        """Wait until every controller is registered: then it has configs of its own."""
        wait_until(
            lambda: all(
                member.controller is not None and node_id in member.controller.committed_image.controllers
                for node_id, member in self.members.items()
            ),
            timeout_s=PATIENCE_S,
            what="all controllers are registered",
        )

    def create(self, topic: str, partitions: int, replicas: int, **configs: str) -> None:
        """Create a topic."""
        new = events.NewTopic(
            topic, uuid.uuid4(), partitions, replicas, configs={k.replace("_", "."): v for k, v in configs.items()}
        )
        controller = self.active().controller
        assert controller is not None
        answers = self.loop.wait(controller.submit(events.CreateTopics((new,))))
        assert answers[topic].failure is None, answers

    def topics(self) -> set[str]:
        """Return the names of all topics, as the active controller has them."""
        controller = self.active().controller
        assert controller is not None
        return {topic.name for topic in controller.committed_image.topics.values()}

    def states(self, topic: str) -> dict[int, tuple[int, frozenset[int]]]:
        """Return leader and ISR of each partition, as the active controller has them."""
        controller = self.active().controller
        assert controller is not None

        async def read() -> dict[int, tuple[int, frozenset[int]]]:
            columns, cluster = controller.cluster.columns, controller.cluster
            return {
                partition: (int(columns.leader[row]), frozenset(columns.isr_of(row)))
                for row in cluster.topics[topic].rows.tolist()
                if (partition := TopicPartition(*cluster.name_of(row)).partition) >= 0
            }

        return self.loop.wait(read())

    def wait_for_move(self, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
        """Wait until a partition has these replicas only."""
        controller = self.active().controller
        assert controller is not None

        async def read() -> tuple[int, ...]:
            row = controller.cluster.row_of(topic, partition)
            assert row is not None
            return controller.cluster.columns.replicas_of(row)

        wait_until(
            lambda: self.loop.wait(read()) == replicas,
            timeout_s=PATIENCE_S,
            what=f"the replicas of {topic}-{partition} are {replicas}",
        )

    def wait_for_isr(self, topic: str, isr: set[int]) -> None:
        """Wait until every partition has this ISR, and one of its members leads."""
        wait_until(
            lambda: all(found == isr and leader in isr for leader, found in self.states(topic).values()),
            timeout_s=PATIENCE_S,
            what=f"the ISR of all partitions of {topic} is {sorted(isr)}",
        )


@contextlib.contextmanager
def steward_cluster(
    controllers: int,
    brokers: int,
    *,
    settings: Mapping[str, str] | None = None,
    broker_settings: Mapping[str, str] | None = None,
    scram: tuple[str, ...] = (),
    features: tuple[str, ...] = (),
    release: str | None = None,
    versions: Mapping[int, str] | None = None,
) -> Iterator[StewardCluster]:
    """Yield a running cluster; everything ends with the block.

    `scram` are arguments of --add-scram, `features` of --feature, `release` that of --release-version. `versions` are those of brokers that
    are not of the newest Kafka.
    """
    with contextlib.ExitStack() as stack:
        cluster = StewardCluster(stack.enter_context(lab_folder(None)), controllers, settings or {})
        cluster.loop.start()
        stack.callback(cluster.loop.close)
        for member in cluster.members.values():
            member.format(scram=scram, features=features, release=release)
            cluster.loop.wait(member.begin())
        for broker in range(1, brokers + 1):
            node = KraftNode(
                broker,
                cluster.folder,
                quorum=cluster.voters,
                cluster_id=CLUSTER_ID,
                controller_port=None,
                port=free_port(),
                brokers=brokers,
                settings=broker_settings,
                version=(versions or {}).get(broker, NEWEST_KAFKA_VERSION),
            )
            stack.callback(node.close)
            cluster.brokers[broker] = node
            node.format()
            node.launch()
        for node in cluster.brokers.values():
            node.wait_until_ready()
        yield cluster
        for member in cluster.members.values():
            if member.process is not None:
                cluster.loop.wait(member.crash())
