"""A quorum of several voters: Kafka 4.x controllers, kafka.tools.TestRaftServer with a load of its own, and Steward's voters.

Voters are static (kraft.version 0), or in the log (kraft.version 1). A quorum may have members that this module does not run: a test
names them, with the ports at which it runs them itself. The leader is read from the nodes' quorum-state files.
"""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import takewhile
from pathlib import Path

from controller_core.shell.quorum.endpoints import InitialController
from controller_core.shell.quorum.format import format_storage
from controller_core.shell.quorum.format_checkpoints import quorum_checkpoint
from controller_core.shell.quorum.format_plan import FormatOptions
from controller_core.shell.quorum.settings_file import read_settings_file
from kafka_log.files.snapshots import write_snapshot
from kafka_log.files.text_files import draw_directory_id, write_meta_properties
from kafka_log.format.names import BOOTSTRAP_SNAPSHOT, CLUSTER_METADATA_FOLDER, QUORUM_STATE
from kafka_log.format.text_files import MetaProperties
from kafka_node.security.endpoints import Address
from kafka_wire.records import batch_headers
from kafka_wire.uuids import encode_uuid
from lab.errors import LabError
from lab.peers.java_process import write_properties
from lab.peers.kafka import HEAP, SMALL
from lab.peers.kraft import format_as_kafka, kafka_4_command, new_id
from lab.peers.quorum_security import LISTENER, QuorumSecurity
from lab.peers.steward import metric_of, steward_command, steward_environment
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.node import Node
from lab.processes.ports import free_port
from lab.processes.process import READY_TIMEOUT_S, Process
from lab.processes.waiting import port_accepts, wait_until

HOST = "127.0.0.1"

METRICS = "metrics"
"""Purpose of a Steward voter's second port."""

RAFT_SERVER_TOPIC = "__raft_performance_test"
RAFT_SERVER_TOPIC_ID = uuid.UUID(int=2)
RAFT_SERVER_LOG = f"{RAFT_SERVER_TOPIC}-0"
"""Topic, topic id and log folder of TestRaftServer."""

RAFT_SERVER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
"""The cluster id of TestRaftServer: Uuid.ZERO_UUID."""


@dataclass(frozen=True, slots=True)
class Load:
    """Records that a TestRaftServer appends while it leads: by default enough to see a log grow, little work for a test's machine.

    `steward_program` is the command of Steward's voters instead of `steward quorum`, with the same options, for a load of their own.
    """

    records_per_s: int = 200
    record_bytes: int = 64
    steward_program: tuple[str, ...] = ()

    def also_of_steward(self) -> Load:
        """Return the same load, which Steward's voters append as well while they lead."""
        program = (sys.executable, "-m", "lab.peers.quorum_load", str(self.records_per_s), str(self.record_bytes))
        return replace(self, steward_program=program)


class Program(Enum):
    """What the Java voters run."""

    CONTROLLER = "a controller"
    RAFT_SERVER = "kafka.tools.TestRaftServer"


class Voters(Enum):
    """Where the voters of a quorum are named, and how it is made."""

    STATIC = "controller.quorum.voters"
    INITIAL = "--initial-controllers"
    STANDALONE = "--standalone, by the first member; the others join as observers"


class Formatter(Enum):
    """Who formats the directories of controllers."""

    KAFKA = "kafka-storage"
    STEWARD = "steward format"


@dataclass(frozen=True, slots=True)
class Member:
    """A voter: its id, port and the id of its metadata directory."""

    node_id: int
    port: int
    directory_id: uuid.UUID

    def as_initial(self) -> InitialController:
        """Return it as an entry of --initial-controllers."""
        return InitialController(self.node_id, Address(HOST, self.port), self.directory_id)


@dataclass(frozen=True, slots=True)
class QuorumPlan:
    """What all members of a quorum have in common."""

    members: tuple[Member, ...]
    cluster_id: str
    voters: Voters = Voters.STATIC
    program: Program = Program.CONTROLLER
    security: QuorumSecurity = field(default_factory=QuorumSecurity)
    settings: Mapping[str, str] | None = None
    load: Load = field(default_factory=Load)
    features: tuple[str, ...] = ()
    """Arguments of --feature, where Steward formats the directories."""
    heap: str = HEAP
    is_small: bool = True
    """Those of Java's voters, as for java_command."""

    def bootstrap(self) -> str:
        """Return the addresses of all members, comma-separated."""
        return ",".join(f"{HOST}:{member.port}" for member in self.members)

    def initial_controllers(self) -> str:
        """Return the argument of --initial-controllers."""
        return ",".join(str(member.as_initial()) for member in self.members)

    def properties(self, member: Member, data_folder: Path) -> dict[str, str]:
        """Return the settings of one member, a Java voter or a Steward controller."""
        if self.voters is Voters.STATIC:
            listed = ",".join(f"{member.node_id}@{HOST}:{member.port}" for member in self.members)
            quorum = {"controller.quorum.voters": listed}
        else:
            quorum = {"controller.quorum.bootstrap.servers": self.bootstrap()}
        return {
            "node.id": str(member.node_id),
            "process.roles": "controller",
            "listeners": f"{LISTENER}://{HOST}:{member.port}",
            "controller.listener.names": LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:{self.security.protocol}",
            "log.dirs": str(data_folder),
            **quorum,
            **self.security.settings,
            **(self.settings or {}),
        }

    def format_arguments(self, member: Member) -> list[str]:
        """Return the arguments of kafka-storage format that name the voters."""
        if self.voters is Voters.STATIC:
            return []
        if self.voters is Voters.INITIAL:
            return ["--initial-controllers", self.initial_controllers()]
        return ["--standalone" if member == self.members[0] else "--no-initial-controllers"]


class QuorumNode(Node):
    """One voter, of Java or Steward; it keeps its ports and data over restarts."""

    def __init__(self, plan: QuorumPlan, member: Member, folder: Path, *, is_steward: bool = False) -> None:
        self.plan = plan
        self.member = member
        self.node_id = member.node_id
        self.is_steward = is_steward
        self.ports = {LISTENER: member.port, **({METRICS: free_port()} if is_steward else {})}
        self.data_folder = folder / f"node-{member.node_id}-data"
        is_controller = plan.program is Program.CONTROLLER
        self.log_folder = self.data_folder / (CLUSTER_METADATA_FOLDER if is_controller else RAFT_SERVER_LOG)
        self._values = {**plan.properties(member, self.data_folder), **SMALL}
        self.properties = write_properties(folder / f"node-{member.node_id}.properties", self._values)
        name = f"node-{member.node_id}"
        if is_steward:
            self.process = Process(name, self._steward(), folder, environment=steward_environment())
        else:
            self.process = Process(name, self._java(), folder)

    def _steward(self) -> list[str]:
        options = [f"--config={self.properties}", f"--metrics-port={self.ports[METRICS]}"]
        if self.plan.program is Program.RAFT_SERVER:
            options += [f"--topic={RAFT_SERVER_TOPIC}", f"--topic-id={encode_uuid(RAFT_SERVER_TOPIC_ID)}"]
        return [*(self.plan.load.steward_program or steward_command("quorum")), *options]

    def _java(self) -> list[str]:
        if self.plan.program is Program.CONTROLLER:
            return self._kafka_command("kafka.Kafka", str(self.properties))
        rate = self.plan.load
        load = ("--throughput", str(rate.records_per_s), "--record-size", str(rate.record_bytes))
        identity = ("--replica-directory-id", encode_uuid(self.member.directory_id))
        arguments = ("--config", str(self.properties), *load, *identity)
        return self._kafka_command("kafka.tools.TestRaftServer", *arguments)

    def _kafka_command(self, main_class: str, *arguments: str) -> list[str]:
        return kafka_4_command(main_class, *arguments, heap=self.plan.heap, is_small=self.plan.is_small)

    def format(self, formatter: Formatter = Formatter.KAFKA) -> None:
        """Format the storage once. TestRaftServer has no tool: it needs its folder, and the checkpoint with the voters."""
        if self.plan.program is Program.RAFT_SERVER:
            self._make_raft_server_log()
        elif formatter is Formatter.STEWARD:
            self._format_as_steward()
        else:
            arguments = self.plan.format_arguments(self.member)
            format_as_kafka(self.node_id, self.plan.cluster_id, self.properties, *arguments)

    def _make_raft_server_log(self) -> None:
        if self.plan.voters is Voters.STANDALONE:
            raise LabError("TestRaftServer has no observers: name all voters")
        self.log_folder.mkdir(parents=True)
        if self.plan.voters is Voters.INITIAL:
            voters = [member.as_initial() for member in self.plan.members]
            checkpoint = quorum_checkpoint(voters, kraft_version=1, listener=LISTENER, now_ms=0)
            write_snapshot(self.log_folder, BOOTSTRAP_SNAPSHOT, checkpoint)
        if self.is_steward:
            identity = MetaProperties(self.plan.cluster_id, self.node_id, self.member.directory_id)
            write_meta_properties(self.data_folder, identity)

    def _format_as_steward(self) -> None:
        is_first = self.member == self.plan.members[0]
        initial = self.plan.initial_controllers()
        options = FormatOptions(
            cluster_id=self.plan.cluster_id,
            is_standalone=self.plan.voters is Voters.STANDALONE and is_first,
            initial_controllers=initial if self.plan.voters is Voters.INITIAL else None,
            has_no_initial_controllers=self.plan.voters is Voters.STANDALONE and not is_first,
            features=self.plan.features,
        )
        format_storage(read_settings_file(self.properties).settings, options, lambda _: None)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of this node only, from its next start on."""
        self._values.update(settings)
        write_properties(self.properties, self._values)

    def launch(self) -> None:
        """Start it without waiting."""
        self.process.launch()

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until it accepts connections; it may not know a leader yet."""
        return self.process.wait_until_ready(lambda: port_accepts(self.member.port), timeout_s=timeout_s)

    def leader_and_epoch(self) -> tuple[int, int]:
        """Return the leader (-1: unknown) and epoch in its quorum-state file; (-1, -1) when there is no file yet."""
        try:
            state = json.loads((self.log_folder / QUORUM_STATE).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return -1, -1
        return int(state["leaderId"]), int(state["leaderEpoch"])

    def log_content(self) -> bytes:
        """Return the bytes of its log's segments, joined."""
        return b"".join(path.read_bytes() for path in sorted(self.log_folder.glob("*.log")))

    def records_before(self, end_offset: int) -> bytes:
        """Return the bytes of its log's batches before an offset, also while it is writing."""
        content = self.log_content()
        before = takewhile(
            lambda header: header.last_offset < end_offset, (header for _, header in batch_headers(content))
        )
        return content[: sum(header.size_bytes for header in before)]

    def high_watermark(self) -> int:
        """Return the high watermark that a Steward voter knows; 0 or less when it knows none or does not answer."""
        return int(self.metric("kafka_server_raft_metrics_high_watermark") or 0)

    def metric(self, sample: str) -> float | None:
        """Return the value of one of a Steward voter's metrics, named with its labels; None when there is none."""
        answer = http_get(self.ports[METRICS], "/metrics")
        return None if answer is None else metric_of(answer.body.decode(), sample)

    def log_bytes(self) -> int:
        """Return the size of its log's segments."""
        return sum(path.stat().st_size for path in self.log_folder.glob("*.log"))


class Quorum(dict[int, QuorumNode]):
    """The voters by id."""

    def __init__(self, plan: QuorumPlan, folder: Path) -> None:
        super().__init__()
        self.plan = plan
        self.folder = folder

    def leader_and_epoch(self) -> tuple[int, int]:
        """Return the leader that most running nodes know in the highest epoch, and the epoch; (-1, -1): there is none."""
        known = [node.leader_and_epoch() for node in self.values() if node.process.running]
        newest = max((epoch for _, epoch in known), default=-1)
        leaders = [leader for leader, epoch in known if epoch == newest and leader >= 0]
        return (leaders[0], newest) if len(leaders) > len(self.plan.members) // 2 else (-1, -1)

    def wait_for_leader(self, *, after_epoch: int = -1, timeout_s: float = READY_TIMEOUT_S) -> tuple[int, int]:
        """Wait until a majority of all members is among the running nodes that know a leader of a later epoch; return both.

        A voter at kraft.version 1 that joined later does not count: the majority is that of the plan's members.
        """

        def elected() -> bool:
            leader, epoch = self.leader_and_epoch()
            return leader >= 0 and epoch > after_epoch

        wait_until(elected, timeout_s=timeout_s, what=f"a leader after epoch {after_epoch}", context=self.report)
        return self.leader_and_epoch()

    def report(self) -> str:
        """Return what each node knows and logged last, for the error of a wait."""
        known = ((node, *node.leader_and_epoch()) for node in self.values())
        return "\n".join(
            f"node {node.node_id}, {'running' if node.process.running else 'ended'}: leader {leader} in epoch {epoch}, "
            f"{node.log_bytes()} bytes, snapshots {sorted(path.name for path in node.log_folder.glob('*.checkpoint'))}; "
            f"its log ends with\n{node.process.log_tail()}"
            for node, leader, epoch in known
        )

    def as_steward(self, node_id: int) -> QuorumNode:
        """Return a voter of Steward with the settings and data of a Java voter, which must not run at the same time."""
        return QuorumNode(self.plan, self[node_id].member, self.folder, is_steward=True)

    def client_properties(self) -> Path:
        """Return the properties file of Kafka's tools for this quorum's listener."""
        return write_properties(self.folder / "client.properties", self.plan.security.client_settings)


@contextlib.contextmanager
def quorum(
    node_ids: Sequence[int] = (1, 2, 3),
    *,
    stewards: Sequence[int] = (),
    first: int | None = None,
    others: Mapping[int, int] | None = None,
    voters: Voters = Voters.STATIC,
    program: Program = Program.CONTROLLER,
    formatter: Formatter | None = Formatter.STEWARD,
    security: QuorumSecurity | None = None,
    settings: Mapping[str, str] | None = None,
    load: Load | None = None,
    features: tuple[str, ...] = (),
    heap: str = HEAP,
    is_small: bool = True,
    start: bool = True,
) -> Iterator[Quorum]:
    """Yield a quorum whose voters are formatted and, with `start`, accept connections; everything ends with the block.

    `node_ids` are Java's voters, `stewards` those of Steward; `first` makes a quorum that the others join. `others` are the ports by id of members that the caller runs; their directory ids are in `plan.members`. `settings` are further
    settings of every node, `load` that of a leader, `features` the first levels; `heap` and `is_small` are those of java_command. Without a `formatter` the caller formats each node. Steward writes the same bytes as
    kafka-storage, without a JVM for each node.
    """
    ids = sorted((*node_ids, *stewards), key=lambda node_id: node_id != first)
    members = [Member(node_id, free_port(), draw_directory_id()) for node_id in ids]
    run_here = tuple(members)
    members += [Member(node_id, port, draw_directory_id()) for node_id, port in (others or {}).items()]
    cluster_id = new_id() if program is Program.CONTROLLER else RAFT_SERVER_CLUSTER
    plan = QuorumPlan(
        tuple(members),
        cluster_id,
        voters,
        program,
        security or QuorumSecurity(),
        settings,
        load or Load(),
        features,
        heap,
        is_small,
    )
    with contextlib.ExitStack() as stack:
        running = Quorum(plan, stack.enter_context(lab_folder(None)))
        for member in run_here:
            is_steward = member.node_id in stewards
            running[member.node_id] = node = QuorumNode(plan, member, running.folder, is_steward=is_steward)
            stack.callback(node.close)
            if formatter is not None:
                node.format(formatter)
        if start:
            for node in running.values():
                node.launch()
            for node in running.values():
                node.wait_until_ready()
        yield running
