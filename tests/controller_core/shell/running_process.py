"""A controller process over an in-memory ZooKeeper: its sessions, registered brokers and competing processes."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from controller_core.shell.active import Defaults
from controller_core.shell.brokers.describe_configs import BrokerSettings, BrokerSettingsError
from controller_core.shell.process import ControllerProcess
from controller_core.shell.settings import ControllerSettings, Listener
from kafka_node.security.brokers import BrokerSecurity
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError
from kafka_zookeeper.formats.brokers import BrokerRegistration, Endpoint, encode_broker
from kafka_zookeeper.formats.controller import ControllerRegistration, controller_id, encode_controller
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeSession, FakeZooKeeper
from tests.waiting import until

OWN_ID = 1000
INTERNAL = "INTERNAL"
SETTINGS = ControllerSettings(
    zookeeper="zk:2181",
    controller_id=OWN_ID,
    listeners=(Listener(INTERNAL, "127.0.0.1", 0, "127.0.0.1", 0),),
    inter_broker_listener=INTERNAL,
    metrics_port=0,
)


class RunningProcess:
    """A process that runs, with its ZooKeeper."""

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.server.put(paths.CONTROLLER_EPOCH, b"7")
        self.sessions: list[FakeSession] = []
        self.connecting: list[Callable[[], Any]] = []
        """Called for the next attempts to connect, one each; later attempts succeed."""
        self.settings_reported = BrokerSettings(Defaults(3, 2, delete_topic_enable=True), 1000)
        self.process = ControllerProcess(SETTINGS, random=lambda: 0.5)
        self.run: asyncio.Task[None] | None = None

    async def connect(self, _settings: object) -> FakeSession:
        """Replaces `ZooKeeperSession.connect`."""
        if self.connecting:
            await self.connecting.pop(0)()
        self.sessions.append(self.server.session())
        return self.sessions[-1]

    async def read_broker_settings(self, broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        """Replaces `read_broker_settings`."""
        if broker == 9:
            raise BrokerSettingsError("broker 9 is silent")
        return self.settings_reported

    def start(self, **settings: Any) -> None:
        """Run the process."""
        if settings:
            self.process = ControllerProcess(replace(SETTINGS, **settings), random=lambda: 0.5)
        self.run = asyncio.create_task(self.process.run())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let all tasks run until the condition holds; fail if the process ends before."""
        run = self.run
        assert run is not None

        def is_true_while_running() -> bool:
            if condition():
                return True
            assert not run.done(), f"the process has ended: {run}"
            return False

        await until(is_true_while_running)

    async def until_active(self) -> None:
        """Wait until the process is the active controller."""
        await self.until(lambda: self.process.active is not None)

    async def end(self) -> None:
        """Stop the process, and wait for its end."""
        assert self.run is not None
        self.process.stop()
        await self.run

    def lose_session(self) -> None:
        """End the current session."""
        self.sessions[-1].expire()

    def active_controller(self) -> int | None:
        """Id in /controller."""
        znode = self.server.znodes.get(paths.CONTROLLER)
        return None if znode is None else controller_id(znode.data)

    def broker(self, broker_id: int, port: int = 1) -> FakeSession:
        """Register a broker, which accepts no connections unless it has a port; returns its session."""
        session = self.server.session()
        endpoint = Endpoint(INTERNAL, "127.0.0.1", port, "PLAINTEXT")
        data = encode_broker(BrokerRegistration(broker_id, (endpoint,)))
        self.server.put(paths.broker(broker_id), data, session.session_id)
        return session

    def elect(self, controller: int) -> FakeSession:
        """Make another process the controller; returns its session."""
        session = self.server.session()
        epoch = int(self.server.at(paths.CONTROLLER_EPOCH).data or b"0")
        if paths.CONTROLLER in self.server.znodes:
            self.server.drop(paths.CONTROLLER)
        self.server.put(paths.CONTROLLER, encode_controller(ControllerRegistration(controller)), session.session_id)
        self.server.put(paths.CONTROLLER_EPOCH, str(epoch + 1).encode())
        return session


async def hangs() -> None:
    """Never return."""
    await asyncio.Event().wait()


async def fails() -> None:
    """Fail like an attempt to open a session."""
    raise ConnectFailedError("no session with ZooKeeper at zk:2181 after 30000 ms")
