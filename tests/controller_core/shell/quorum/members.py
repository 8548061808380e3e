"""Members of a quorum in one process, over real sockets and files, for tests."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from controller_core.quorum.node import Node
from controller_core.quorum.retention import CLEANING_INTERVAL_MS
from controller_core.quorum.states import Leader
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.format import format_storage
from controller_core.shell.quorum.format_plan import FormatOptions
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess
from controller_core.shell.quorum.settings_reading import read_settings
from lab.processes.ports import free_port
from tests.waiting import until

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
PATIENCE_S = 60.0

TIMES = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "2000",
}
"""An early first election, and followers that do not start another one on a busy machine."""


class Member:
    """One node with its files; it can be started again."""

    def __init__(
        self, folder: Path, node_id: int, ports: dict[int, int], properties: Mapping[str, str] | None = None
    ) -> None:
        self.id = node_id
        self.folder = folder / f"node-{node_id}"
        listed = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
        values = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://127.0.0.1:{ports[node_id]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": listed,
            "log.dirs": str(self.folder),
            **TIMES,
            **(properties or {}),
        }
        self.settings = read_settings(values).settings
        self.process: QuorumProcess | None = None
        self._task: asyncio.Task[None] | None = None

    def format(
        self,
        cluster_id: str = CLUSTER_ID,
        *,
        scram: tuple[str, ...] = (),
        features: tuple[str, ...] = (),
        release: str | None = None,
    ) -> None:
        """Format the directory; `scram` are arguments of --add-scram, `features` of --feature, `release` that of --release-version."""
        options = FormatOptions(cluster_id=cluster_id, scram=scram, features=features, release_version=release)
        format_storage(self.settings, options, lambda _: None)

    def start(self, *, cleaning_interval_ms: int = CLEANING_INTERVAL_MS) -> None:
        """Start the node."""
        options = NodeOptions(metrics_port=0, cleaning_interval_ms=cleaning_interval_ms)
        self.process = QuorumProcess(self.settings, options)
        self._task = asyncio.create_task(self.process.run())

    async def stop(self) -> None:
        """Stop it gracefully."""
        assert self.process is not None
        assert self._task is not None
        self.process.stop()
        await asyncio.wait_for(self._task, PATIENCE_S)
        self.process = None

    async def crash(self) -> None:
        """End it without handing over."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.process = None

    @property
    def driver(self) -> Driver:
        """The driver of the running node."""
        assert self.process is not None
        assert self.process.driver is not None
        return self.process.driver

    @property
    def node(self) -> Node | None:
        """The node as it is now."""
        driver = None if self.process is None else self.process.driver
        return None if driver is None else driver.node

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return self.node is not None and isinstance(self.node.state, Leader)

    async def append(self, *values: bytes) -> int:
        """Append records at the leader, and return the offset of the first."""
        assert self.node is not None
        return (await self.driver.append(self.node.epoch, list(values))).base_offset

    def log_bytes(self) -> bytes:
        """Return the bytes of the log's segments."""
        segments = sorted((self.folder / "__cluster_metadata-0").glob("*.log"))
        return b"".join(path.read_bytes() for path in segments)


def members(folder: Path, count: int, properties: Mapping[str, str] | None = None) -> list[Member]:
    """Return formatted members of a quorum of static voters."""
    ports = {node_id: free_port() for node_id in range(1, count + 1)}
    made = [Member(folder, node_id, ports, properties) for node_id in ports]
    for member in made:
        member.format()
    return made


async def leader_of(some: Sequence[Member], *, after_epoch: int = 0) -> Member:
    """Wait until one of the members leads in a later epoch and all running ones follow it."""

    def leaders() -> list[Member]:
        found = [member for member in some if member.is_leader]
        return [
            leader
            for leader in found
            if leader.node is not None
            and leader.node.epoch > after_epoch
            and all(
                member.node.leader_id == leader.id and member.node.epoch == leader.node.epoch
                for member in some
                if member.node
            )
        ]

    await until(lambda: bool(leaders()))
    return leaders()[0]


def committed(member: Member) -> int:
    """Return the high watermark that a member knows."""
    return 0 if member.node is None else member.node.high_watermark or 0
