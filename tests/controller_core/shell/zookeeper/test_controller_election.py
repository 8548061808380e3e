"""Controller election: golden scripts of its requests, and properties of many processes.

Sources: KafkaController.elect; protocol notes, Z10, Z13 (a native broker is deposed in one transaction); C5, C6.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from controller_core.shell.zookeeper import controller_election as election_module
from controller_core.shell.zookeeper.controller_election import ControllerElection, Controllership
from kafka_zookeeper import paths
from kafka_zookeeper.formats.controller import ControllerRegistration, encode_controller
from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeSession
from tests.controller_core.shell.zookeeper.other_processes import OtherProcesses

SCRIPTS = sorted((Path(__file__).parent / "golden" / "controller_election").glob("*.txt"))
OWN_ID = 1000
NOW_S = 1_700_000_000.0
AN_HOUR_S = 3600.0
STEPS = 60
"""Iterations of the event loop after which all tasks wait."""


class World(OtherProcesses):
    """Sessions of several processes; the one under test has the id 1000.

    Commands in addition to those of `other_processes`:

    broker N          a broker registers                         expire N       a session expires, with its ephemerals
    elect N           that session is elected, as Kafka's brokers do
    acquire           start to acquire controllership            watch          start to watch for its loss
    continue          print requests until all tasks wait
    """

    def __init__(self) -> None:
        super().__init__()
        self.server.put(paths.BROKER_IDS)
        self.session = self.server.session()
        self.election = ControllerElection(self.session, OWN_ID)
        self.sessions: dict[int, FakeSession] = {}
        self.task: asyncio.Task[Controllership | None] | None = None

    async def do(self, command: str) -> list[str]:
        """Carry out one command."""
        match command:
            case "acquire":
                self.task = asyncio.create_task(self.election.acquire())
                return await self.settled()
            case "watch":
                self.task = asyncio.create_task(self.election.lost())
                return await self.settled()
            case "continue":
                return await self.settled()
        self.run_other(command)
        return []

    def run_other(self, command: str) -> None:
        """Run a command of another process."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "broker":
                self.sessions[int(rest)] = self.server.session()
                self.server.put(paths.broker(int(rest)), b"{}", self.sessions[int(rest)].session_id)
            case "expire":
                self.sessions.pop(int(rest)).expire()
            case "elect":
                self._elect(int(rest))
            case _:
                super().run_other(command)

    def _elect(self, broker_id: int) -> None:
        session = self.sessions.setdefault(broker_id, self.server.session())
        raised = int(self.server.at(paths.CONTROLLER_EPOCH).data or b"0") + 1
        if paths.CONTROLLER in self.server.znodes:
            self.server.drop(paths.CONTROLLER)
        self.server.put(paths.CONTROLLER, encode_controller(ControllerRegistration(broker_id)), session.session_id)
        self.server.put(paths.CONTROLLER_EPOCH, str(raised).encode())

    async def settled(self) -> list[str]:
        """Run until all tasks wait, and print requests and result."""
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert self.task is not None
        lines, self.server.lines = self.server.lines, []
        if not self.task.done():
            return [*lines, "waiting"]
        won = self.task.result()
        if won is None:
            return [*lines, "lost"]
        return [*lines, f"acquired: epoch {won.epoch}, version {won.epoch_version}, from {won.taken_from}"]

    async def close(self) -> None:
        """Cancel the task if it still waits."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world in which a lost race is tried again at once, and a standby only reads when its watch fires."""
    monkeypatch.setattr(election_module, "RETRY_S", 0.0)
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", AN_HOUR_S)
    monkeypatch.setattr(time, "time", lambda: NOW_S)
    world = World()
    yield world
    await world.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_the_election_follows_the_script(script: Path, world: World) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, world.do)


async def test_a_standby_polls_without_accumulating_watches(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby may wait for months, with a read every five seconds."""
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", 0.0)
    world.run_other("znode /controller_epoch 3")
    world.run_other("elect 1001")
    lines = await world.do("acquire")

    assert lines.count("get /controller and watch") == 1
    assert lines.count("get /controller") > 3
    assert world.server.watches == 1


async def test_a_watch_is_set_again_after_a_lost_connection(world: World) -> None:
    """`kafka_zookeeper.session`: all watches end with the connection, and their callbacks are called."""
    world.run_other("znode /controller_epoch 3")
    world.run_other("elect 1001")
    await world.do("acquire")
    world.session.lose_connection()

    assert await world.do("continue") == [
        "get /controller_epoch",
        "get /controller and watch",
        "get /brokers/ids/1001",
        "waiting",
    ]


async def test_a_blocked_election_is_logged_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad input never floods a log."""
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", 0.0)
    world.run_other("znode /controller_epoch 3")
    world.run_other("znode /controller garbage")
    with caplog.at_level(logging.INFO):
        await world.do("acquire")
        world.run_other("znode /controller {}")
        await world.do("continue")

    messages = [vars(record)["error"] for record in caplog.records if record.levelno == logging.ERROR]
    assert len(messages) == 2
    assert "names no broker" in messages[0]
    assert "cannot be read" in messages[1]
    assert all("delete it" in message for message in messages)


@pytest.mark.shows("C5", "C6")
async def test_one_of_many_processes_is_elected_and_epochs_grow(world: World) -> None:
    """C5, C6: five Steward controllers compete; each winner's session expires, until none is left."""
    world.run_other("znode /controller_epoch 0")
    sessions = [world.server.session() for _ in range(5)]
    tasks = {
        asyncio.create_task(ControllerElection(session, 1001 + number).acquire()): session
        for number, session in enumerate(sessions)
    }
    won: list[Controllership] = []
    while tasks:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert [task for task in tasks if task.done()] == list(done)
        (winner,) = done
        won.append(winner.result())
        assert tasks[winner].session_id == world.server.at(paths.CONTROLLER).owner
        assert won[-1].epoch_version == world.server.at(paths.CONTROLLER_EPOCH).version
        tasks.pop(winner).expire()

    assert all(earlier.epoch < later.epoch for earlier, later in pairwise(won))
