"""Who holds the cluster: golden scripts of the election's conversations, and what scripts cannot say.

Sources: KafkaController.elect; protocol notes, Z10, Z13 (a native broker is relieved in one transaction); C5, C6.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from controller_core.shell.zookeeper import controller_election as election_module
from controller_core.shell.zookeeper.controller_election import ControllerElection, Controllership
from kafka_zookeeper import paths
from kafka_zookeeper.formats.controller import ControllerRegistration, encode_controller
from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeSession, FakeZooKeeper, Fault

SCRIPTS = sorted((Path(__file__).parent / "golden" / "controller_election").glob("*.txt"))
OWN_ID = 1000
NOW_S = 1_700_000_000.0
AN_HOUR_S = 3600.0
STEPS = 60
"""Turns of the event loop in which everything is done that can be done."""


class World:
    """Sessions that want one place; ours has the id 1000.

    broker N          a broker registers                 dies N         a session ends, with all that it held
    takes N           that session takes the place, as Kafka's brokers do
    znode PATH DATA   somebody writes a znode            gone PATH      deletes one
    meanwhile COMMAND / reading PATH: COMMAND            just before our next transaction, or read of that path
    next done         the next transaction's answer is lost, and it is done (or: not done)
    stand by          we want the place                  go on          look at what came of it
    hold              we watch over our place
    """

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.server.put(paths.BROKER_IDS)
        self.session = self.server.session()
        self.election = ControllerElection(self.session, OWN_ID)
        self.sessions: dict[int, FakeSession] = {}
        self.task: asyncio.Task[Controllership | None] | None = None

    async def do(self, command: str) -> list[str]:
        """Carry out one command."""
        match command:
            case "stand by":
                self.task = asyncio.create_task(self.election.acquire())
                return await self.settled()
            case "hold":
                self.task = asyncio.create_task(self.election.lost())
                return await self.settled()
            case "go on":
                return await self.settled()
        self.happens(command)
        return []

    def happens(self, command: str) -> None:
        """Let something happen that others do, now or later."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "broker":
                self.sessions[int(rest)] = self.server.session()
                self.server.put(paths.broker(int(rest)), b"{}", self.sessions[int(rest)].session_id)
            case "dies":
                self.sessions.pop(int(rest)).expire()
            case "takes":
                self._takes(int(rest))
            case "znode":
                path, _, data = rest.partition(" ")
                self.server.put(path, data.encode() if data else None)
            case "gone":
                self.server.drop(rest)
            case "meanwhile":
                self.server.before_writes.append(lambda: self.happens(rest))
            case "reading":
                path, _, doing = rest.partition(": ")
                self.server.before_reads.append((path, lambda: self.happens(doing)))
            case "next":
                self.server.faults.append({"done": Fault.DONE, "not done": Fault.NOT_DONE}[rest])
            case _:
                raise ValueError(f"no such command: {command}")

    def _takes(self, who: int) -> None:
        session = self.sessions.setdefault(who, self.server.session())
        raised = int(self.server.at(paths.CONTROLLER_EPOCH).data or b"0") + 1
        if paths.CONTROLLER in self.server.znodes:
            self.server.drop(paths.CONTROLLER)
        self.server.put(paths.CONTROLLER, encode_controller(ControllerRegistration(who)), session.session_id)
        self.server.put(paths.CONTROLLER_EPOCH, str(raised).encode())

    async def settled(self) -> list[str]:
        """Let everything happen that can, and tell it."""
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert self.task is not None
        lines, self.server.lines = self.server.lines, []
        if not self.task.done():
            return [*lines, "we wait"]
        place = self.task.result()
        if place is None:
            return [*lines, "the place is lost"]
        return [*lines, f"we hold it: epoch {place.epoch}, version {place.epoch_version}, from {place.taken_from}"]

    async def close(self) -> None:
        """End what still waits."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world in which a lost race is tried again at once, and a standby looks by its watch alone."""
    monkeypatch.setattr(election_module, "RETRY_S", 0.0)
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", AN_HOUR_S)
    monkeypatch.setattr(election_module.time, "time", lambda: NOW_S)
    world = World()
    yield world
    await world.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_the_place_is_taken_as_the_script_says(script: Path, world: World) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, world.do)


async def test_a_standby_looks_without_a_watch_as_well_and_gathers_no_watches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on everything: a standby may wait for months, with a look every five seconds."""
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", 0.0)
    world.happens("znode /controller_epoch 3")
    world.happens("takes 1001")
    lines = await world.do("stand by")

    assert lines.count("get /controller and watch") == 1
    assert lines.count("get /controller") > 3
    assert world.server.watches == 1


async def test_a_watch_that_went_with_its_connection_is_armed_again(world: World) -> None:
    """Kafka_zookeeper.session: all watches end with the connection, which their callbacks are told."""
    world.happens("znode /controller_epoch 3")
    world.happens("takes 1001")
    await world.do("stand by")
    world.session.blink()

    assert (await world.do("go on")) == [
        "get /controller_epoch",
        "get /controller and watch",
        "get /brokers/ids/1001",
        "we wait",
    ]


async def test_what_nobody_can_mend_is_complained_of_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad input never floods a log."""
    monkeypatch.setattr(election_module, "STANDBY_CHECK_S", 0.0)
    world.happens("znode /controller_epoch 3")
    world.happens("znode /controller garbage")
    with caplog.at_level(logging.INFO):
        await world.do("stand by")
        world.happens("znode /controller {}")
        await world.do("go on")

    whys = [record.error for record in caplog.records if record.levelno == logging.ERROR]
    assert len(whys) == 2
    assert "names no broker" in whys[0]
    assert "cannot be read" in whys[1]
    assert all("delete it" in why for why in whys)


@pytest.mark.shows("C5", "C6")
async def test_of_many_that_want_the_place_one_has_it_and_epochs_only_grow(world: World) -> None:
    """C5, C6: five processes of ours race, the one that holds it dies, until nobody is left."""
    world.happens("znode /controller_epoch 0")
    sessions = [world.server.session() for _ in range(5)]
    tasks = {
        asyncio.create_task(ControllerElection(session, 1001 + number).acquire()): session
        for number, session in enumerate(sessions)
    }
    places: list[Controllership] = []
    while tasks:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert [task for task in tasks if task.done()] == list(done)
        (winner,) = done
        places.append(winner.result())
        assert tasks[winner].session_id == world.server.at(paths.CONTROLLER).owner
        assert places[-1].epoch_version == world.server.at(paths.CONTROLLER_EPOCH).version
        tasks.pop(winner).expire()

    assert all(earlier.epoch < later.epoch for earlier, later in pairwise(places))
